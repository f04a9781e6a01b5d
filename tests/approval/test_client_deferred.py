"""Approvals that a client of the modern era brings with a repeated call."""

from typing import Any

import pytest

from tests.approval.clients import ACCEPT, Client, gone
from tests.approval.people import ASK, Person, broker_of, call, code
from tests.world import World
from toolreeve import tool
from toolreeve.approval.request import Request
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.core.mcp import Era
from toolreeve.core.peer import PriorAnswer, PriorApproval
from toolreeve.core.result import ToolResult
from toolreeve.policy.rules import PermissionRule
from toolreeve.serve.mcp.elicitation import read_answer


def brought(question: Request, result: Any) -> PriorAnswer:
    """The client's response to the form, as its door brings it with the repeated call."""
    return PriorAnswer(
        binding=question.binding,
        question=question.id,
        asked=1.0,
        read=lambda request: read_answer(request, result),
        channel="client",
    )


async def bring(world: World, answer: Any, *, change: str = "", **options: Any) -> ToolResult:
    """Ask, and come back with an answer; `change` is what differs the second time."""
    client = Client(Era.MODERN)
    async with world.reeve(**options) as reeve:
        await client.writes(reeve)
        assert client.question is not None
        client.decision = brought(client.question, answer)
        client.question = None
        match change:
            case "content":
                return await client.writes(reeve, content="something else")
            case "principal":
                return await client.writes(reeve, principal=Principal(user="local", role=Role.ADMIN))
            case "session":
                client.client.session = "t"
        return await client.writes(reeve)


async def test_a_client_of_the_modern_era_is_asked_with_the_answer_and_nobody_else_is(world: World) -> None:
    client, person = Client(Era.MODERN), Person()
    async with world.reeve(approve=person) as reeve:
        result = await client.writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert client.question is not None
    assert client.question.args["path"] == "a.txt"
    assert not client.form.asked
    assert not person.requests
    assert not (world.workspace / "a.txt").exists()


async def test_an_answer_that_is_brought_for_the_same_call_lets_it_run(world: World) -> None:
    result = await bring(world, ACCEPT)

    assert result.success
    assert result.meta.approved_by == "the client's user via client"


@pytest.mark.parametrize("change", ["content", "principal", "session"])
async def test_an_answer_that_is_brought_for_another_call_is_asked_again(world: World, change: str) -> None:
    result = await bring(world, ACCEPT, change=change)

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert not (world.workspace / "a.txt").exists()


@pytest.mark.parametrize("answer", [None, {"action": "cancel"}, {"action": "accept", "content": {"decision": True}}])
async def test_what_is_brought_and_is_no_answer_leaves_the_question_open(world: World, answer: Any) -> None:
    result = await bring(world, answer)

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert not (world.workspace / "a.txt").exists()


async def test_a_decline_that_is_brought_is_a_no(world: World) -> None:
    assert code(await bring(world, {"action": "decline"})) is ErrorCode.APPROVAL_DENIED


async def test_a_policy_that_changed_between_question_and_answer_asks_again(world: World) -> None:
    first, second = Client(Era.MODERN), Client(Era.MODERN)
    async with world.reeve() as reeve:
        await first.writes(reeve)
    assert first.question is not None
    second.decision = brought(first.question, ACCEPT)
    rule = PermissionRule(tool="write_file", decision="ask", reason="since yesterday")
    async with world.reeve(policy=[rule]) as reeve:
        result = await second.writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_PENDING


async def test_a_policy_that_denies_by_now_is_not_outweighed_by_an_answer(world: World) -> None:
    first, second = Client(Era.MODERN), Client(Era.MODERN)
    async with world.reeve() as reeve:
        await first.writes(reeve)
    assert first.question is not None
    second.decision = brought(first.question, ACCEPT)
    async with world.reeve(policy=[PermissionRule(tool="write_file", decision="deny")]) as reeve:
        result = await second.writes(reeve)

    assert code(result) is ErrorCode.DENIED


async def test_events_tell_of_the_question_once_and_of_its_answer(world: World) -> None:
    told: list[Any] = []
    client = Client(Era.MODERN)
    async with world.reeve() as reeve:
        reeve.bus.listen(told.append)
        await client.writes(reeve)
        assert client.question is not None
        client.decision = brought(client.question, ACCEPT)
        await client.writes(reeve)

    approvals = [event for event in told if event.event.startswith("approval")]
    assert [(event.event, event.data["request"]) for event in approvals] == [
        ("approval_requested", client.question.id),
        ("approval_resolved", client.question.id),
    ]


async def test_an_approval_of_edited_arguments_names_no_call_that_could_go_on_with_the_old_ones() -> None:
    broker = broker_of(lambda request: request.allow(args={"path": "b.txt", "content": "x"}))

    approval = await broker.settle(call(), ASK)

    assert approval.args is not None
    assert approval.binding == ""


async def test_a_tool_that_asks_for_more_after_its_approval_is_let_go_on_once_it_has_been_granted(world: World) -> None:
    """What the door does after a pause: it brings the approval that was given, under the binding of the call."""

    @tool(name="greet", danger=DangerLevel.HIGH)
    async def greet(name: str) -> str:
        return f"hello {name}"

    client = Client(answers=lambda _: ACCEPT)
    later = Client(answers=gone)
    async with world.reeve(tools=[greet]) as reeve:
        made = ToolCall(tool="greet", args={"name": "Ann"}, session="s", peer=client)
        result = await reeve.run(made)
        later.decision = PriorApproval(binding=result.meta.binding, by=str(result.meta.approved_by))
        again = await reeve.run(ToolCall(tool="greet", args={"name": "Ann"}, session="s", peer=later))
        other = await reeve.run(ToolCall(tool="greet", args={"name": "Bob"}, session="s", peer=later))

    assert again.success
    assert again.meta.binding == result.meta.binding != ""
    assert code(other) is ErrorCode.APPROVAL_PENDING
