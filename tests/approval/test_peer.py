"""Approvals asked of the client that made the call, in both eras, and kept where it can show nothing."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.approval.clients import ACCEPT, Client, gone
from tests.approval.people import ASK, Person, broker_of, call
from tests.world import World
from toolreeve import tool
from toolreeve.approval.docket import read_question, write_answer
from toolreeve.approval.elicitation import LONGEST, NoAnswer, can_elicit, elicitation, read_answer
from toolreeve.approval.request import Request, pose
from toolreeve.config import Approval as ApprovalSettings
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.core.peer import Decided, Era
from toolreeve.core.result import ToolResult
from toolreeve.policy.rules import PermissionRule
from toolreeve.record.approvals import PENDING, USED, Matter


def code(result: ToolResult) -> ErrorCode | None:
    return None if result.error is None else result.error.code


def question(**arguments: Any) -> Request:
    return pose(call(args=arguments or None), ASK, version="1", timeout=60.0, lasting="- a rule")


def test_a_client_shows_forms_unless_it_says_that_it_shows_only_pages() -> None:
    assert can_elicit({"elicitation": {}})
    assert can_elicit({"elicitation": {"form": {}, "url": {}}})
    assert not can_elicit({"elicitation": {"url": {}}})
    assert not can_elicit({})
    assert not can_elicit({"elicitation": None})
    assert not can_elicit({"elicitation": True})


def test_the_form_shows_everything_and_offers_no_first() -> None:
    params = elicitation(question(path="a.txt", content="line one\nline two"))

    assert "Tool 'write_file' (danger=medium)" in params["message"]
    assert "line one" in params["message"]
    assert "line two" in params["message"]
    assert "Asked because: Default mode: medium tools are asked for" in params["message"]
    assert params["requestedSchema"]["properties"]["decision"]["enum"] == [
        "deny",
        "allow once",
        "allow for this session",
        "always allow",
    ]


def test_always_is_not_offered_where_nothing_can_be_remembered() -> None:
    request = pose(call(), ASK, version="1", timeout=60.0)

    assert "always allow" not in elicitation(request)["requestedSchema"]["properties"]["decision"]["enum"]
    with pytest.raises(NoAnswer):
        read_answer(request, {"action": "accept", "content": {"decision": "always allow"}})


def test_what_hides_in_an_argument_is_spelled_out_in_the_form() -> None:
    hidden = "rm \u202etxt.exe\u202c \u200b\x1b[2J\r\nAsked because: you wanted it"

    message = elicitation(question(path="a", content=hidden))["message"]

    assert not any(character in message for character in "\u202e\u202c\u200b\x1b\r")
    assert "‹U+202E›" in message
    assert "‹U+200B›" in message
    assert [line for line in message.splitlines() if line.startswith("  Asked because:")] == [
        "  Asked because: Default mode: medium tools are asked for"
    ]


def test_a_call_that_is_too_long_for_a_form_says_so_first() -> None:
    message = elicitation(question(path="a", content="y" * (LONGEST + 1)))["message"]

    assert message.startswith("(Not all of it fits here:")
    assert "? shows" not in message
    assert len(message) <= LONGEST + 200


@pytest.mark.parametrize(
    "result",
    [
        None,
        True,
        "accept",
        [],
        {},
        {"action": "accept"},
        {"action": "accept", "content": None},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"decision": True}},
        {"action": "accept", "content": {"decision": 1}},
        {"action": "accept", "content": {"decision": "yes"}},
        {"action": "accept", "content": {"decision": "Allow once"}},
        {"action": "accept", "content": {"decision": ["allow once"]}},
        {"action": "accept", "content": [("decision", "allow once")]},
        {"action": "ACCEPT", "content": {"decision": "allow once"}},
        {"action": True, "content": {"decision": "allow once"}},
        {"action": "cancel", "content": {"decision": "allow once"}},
        {"content": {"decision": "allow once"}},
        {"approved_by": "me"},
    ],
)
def test_what_is_not_an_offered_choice_is_no_answer(result: Any) -> None:
    with pytest.raises(NoAnswer):
        read_answer(question(), result)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["accept", "allow once"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["action", "content", "decision", "note", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(_json)
def test_only_an_accepted_choice_ever_grants(result: Any) -> None:
    try:
        answer = read_answer(question(), result)
    except NoAnswer:
        return
    if answer.granted:
        assert result["action"] == "accept"
        assert result["content"]["decision"] in ("allow once", "allow for this session", "always allow")


def test_a_decline_is_a_no_whatever_came_with_it() -> None:
    assert not read_answer(question(), {"action": "decline", "content": {"decision": "allow once"}}).granted
    refused = read_answer(question(), {"action": "accept", "content": {"decision": "deny", "note": "not there"}})
    assert (refused.granted, refused.note) == (False, "not there")


async def test_a_client_that_shows_forms_is_asked_while_its_call_waits(world: World) -> None:
    client = Client(answers=lambda _: ACCEPT)
    async with world.reeve() as reeve:
        result = await client.writes(reeve)

    assert result.success
    assert result.meta.approved_by == "local via client"
    assert client.asked[0][0] == "elicitation/create"
    assert "+x" in client.message, "the change is shown as a difference"


async def test_a_session_answer_covers_the_same_session_of_the_same_client_only(world: World) -> None:
    accept = {"action": "accept", "content": {"decision": "allow for this session"}}
    one, other = Client(answers=lambda _: accept), Client(answers=lambda _: {"action": "decline"}, session="t")
    async with world.reeve() as reeve:
        await one.writes(reeve)
        again = await one.writes(reeve, content="y")
        elsewhere = await other.writes(reeve, content="y")

    assert again.success
    assert len(one.asked) == 1
    assert code(elsewhere) is ErrorCode.APPROVAL_DENIED


async def test_a_no_tells_the_model_why(world: World) -> None:
    client = Client(answers=lambda _: {"action": "accept", "content": {"decision": "deny", "note": "use b.txt"}})
    async with world.reeve() as reeve:
        result = await client.writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert "refused by local via client: use b.txt" in result.to_text()
    assert not (world.workspace / "a.txt").exists()


@pytest.mark.parametrize("answers", [lambda _: {"action": "cancel"}, lambda _: {"action": "accept"}, gone])
async def test_a_dismissed_or_senseless_answer_is_neither_yes_nor_no(world: World, answers: Any) -> None:
    async with world.reeve() as reeve:
        result = await Client(answers=answers).writes(reeve)

    assert code(result) is ErrorCode.PERMISSION
    assert not (world.workspace / "a.txt").exists()


async def test_the_other_channels_are_asked_at_the_same_time_and_the_form_is_taken_back(world: World) -> None:
    client, person = Client(), Person()
    async with world.reeve(approve=person) as reeve:
        writing = asyncio.create_task(client.writes(reeve))
        await client.shown.wait()
        await person.asked.wait()
        person.say(lambda request: request.allow())
        result = await writing

    assert result.meta.approved_by == "local via person"
    assert client.withdrawn


async def test_thinking_longer_than_the_tool_may_run_is_no_timeout(world: World) -> None:
    """The person answers only after the tool's own time would have been over more than once."""
    client, person = Client(capabilities={}), Person()
    async with world.reeve(approve=person) as reeve:
        writing = asyncio.create_task(client.writes(reeve, timeout=0.05))
        await person.asked.wait()
        await asyncio.wait([writing], timeout=0.2)
        person.say(lambda request: request.allow())
        result = await writing

    assert result.success, result.to_text()


async def test_silence_at_the_client_is_a_timeout_and_takes_the_form_back(world: World) -> None:
    client = Client()
    async with world.reeve(settings=world.settings(approval=ApprovalSettings(timeout=0.05))) as reeve:
        result = await client.writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_TIMEOUT
    assert client.withdrawn


async def test_a_client_of_the_modern_era_is_asked_with_the_answer_and_nobody_else_is(world: World) -> None:
    client, person = Client(Era.MODERN), Person()
    async with world.reeve(approve=person) as reeve:
        result = await client.writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert client.question is not None
    assert client.question.args["path"] == "a.txt"
    assert not client.asked
    assert not person.requests
    assert not (world.workspace / "a.txt").exists()


async def bring(world: World, answer: Any, *, change: str = "", **options: Any) -> ToolResult:
    """Ask, and come back with an answer; `change` is what differs the second time."""
    client = Client(Era.MODERN)
    async with world.reeve(**options) as reeve:
        await client.writes(reeve)
        assert client.question is not None
        told = {"elicitation": answer, "question": client.question.id, "asked": 1.0}
        client.decision = Decided(client.question.binding, told if isinstance(answer, dict | None) else answer)
        client.question = None
        match change:
            case "content":
                return await client.writes(reeve, content="something else")
            case "principal":
                return await client.writes(reeve, principal=Principal(user="local", role=Role.ADMIN))
            case "session":
                client.session = "t"
        return await client.writes(reeve)


async def test_an_answer_that_is_brought_for_the_same_call_lets_it_run(world: World) -> None:
    result = await bring(world, ACCEPT)

    assert result.success
    assert result.meta.approved_by == "local via client"


@pytest.mark.parametrize("change", ["content", "principal", "session"])
async def test_an_answer_that_is_brought_for_another_call_is_asked_again(world: World, change: str) -> None:
    result = await bring(world, ACCEPT, change=change)

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert not (world.workspace / "a.txt").exists()


@pytest.mark.parametrize("answer", [None, {"action": "cancel"}, {"action": "accept", "content": {"decision": True}}])
async def test_what_is_brought_and_is_no_answer_ends_the_call(world: World, answer: Any) -> None:
    result = await bring(world, answer)

    assert code(result) is ErrorCode.PERMISSION


async def test_a_decline_that_is_brought_is_a_no(world: World) -> None:
    assert code(await bring(world, {"action": "decline"})) is ErrorCode.APPROVAL_DENIED


async def test_a_policy_that_changed_between_question_and_answer_asks_again(world: World) -> None:
    first, second = Client(Era.MODERN), Client(Era.MODERN)
    async with world.reeve() as reeve:
        await first.writes(reeve)
    assert first.question is not None
    second.decision = Decided(first.question.binding, {"elicitation": ACCEPT, "question": "q", "asked": 1.0})
    rule = PermissionRule(tool="write_file", decision="ask", reason="since yesterday")
    async with world.reeve(policy=[rule]) as reeve:
        result = await second.writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_PENDING


async def test_a_policy_that_denies_by_now_is_not_outweighed_by_an_answer(world: World) -> None:
    first, second = Client(Era.MODERN), Client(Era.MODERN)
    async with world.reeve() as reeve:
        await first.writes(reeve)
    assert first.question is not None
    second.decision = Decided(first.question.binding, {"elicitation": ACCEPT, "question": "q", "asked": 1.0})
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
        asked = {"elicitation": ACCEPT, "question": client.question.id, "asked": 1.0}
        client.decision = Decided(client.question.binding, asked)
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


async def test_where_the_client_can_show_nothing_the_channels_are_asked(world: World) -> None:
    async with world.reeve(approve=lambda _: True) as reeve:
        result = await Client(Era.MODERN, {}).writes(reeve)

    assert result.success
    assert result.meta.approved_by == "local via callback"


async def test_where_nobody_is_there_the_question_is_kept_with_everything_in_it(world: World) -> None:
    async with world.reeve() as reeve:
        result = await Client(capabilities={}).writes(reeve)
    async with world.reeve() as reeve:
        (matter,) = await reeve.approvals.list()

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert result.data == {"status": "pending", "approval_id": matter.id, "expires": matter.expires}
    assert f"The question waits as {matter.id!r}: a person must decide it" in result.to_text()
    assert "toolreeve approvals" not in json.dumps(result.to_mcp()), "no command that a model could run itself"
    request = read_question(matter.id, matter.question)
    assert (request.tool, request.danger, request.session) == ("write_file", DangerLevel.MEDIUM, "s")
    assert request.args == {"path": "a.txt", "content": "x", "append": False} or request.args["content"] == "x"
    assert "+x" in request.preview


async def test_without_a_client_nothing_is_kept_and_the_call_is_refused(world: World) -> None:
    async with world.reeve() as reeve:
        result = await reeve.call("write_file", path="a.txt", content="x")
        kept = await reeve.approvals.list(pending_only=False)

    assert code(result) is ErrorCode.PERMISSION
    assert kept == []


async def answered(world: World, **answer: Any) -> Matter:
    """A question that was kept, and somebody's answer to it."""
    async with world.reeve() as reeve:
        await Client(capabilities={}).writes(reeve)
        (matter,) = await reeve.approvals.list()
        assert await reeve.approvals.decide(matter.id, GRANT | answer)
    return matter


GRANT = {"granted": True, "by": "Bea", "scope": "once", "note": "", "args": None}


async def test_the_same_call_again_uses_what_was_answered_meanwhile_once(world: World) -> None:
    await answered(world)
    async with world.reeve() as reeve:
        first = await Client(capabilities={}).writes(reeve)
        second = await Client(capabilities={}).writes(reeve)

    assert first.success
    assert first.meta.approved_by == "Bea"
    assert code(second) is ErrorCode.APPROVAL_PENDING


async def test_a_no_on_the_docket_is_told_once_with_its_note(world: World) -> None:
    await answered(world, granted=False, note="ask Carl")
    async with world.reeve() as reeve:
        result = await Client(capabilities={}).writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert "refused by Bea: ask Carl" in result.to_text()


async def test_an_answer_on_the_docket_fits_no_other_call_nor_caller(world: World) -> None:
    matter = await answered(world)
    eve = Principal(user="eve")
    async with world.reeve() as reeve:
        results = [
            await Client(capabilities={}).writes(reeve, content="other"),
            await Client(capabilities={}, session="t").writes(reeve),
            await Client(capabilities={}).writes(reeve, principal=eve),
        ]
        unused = await reeve.approvals.find(matter.id)

    assert [code(result) for result in results] == [ErrorCode.APPROVAL_PENDING] * 3
    assert unused is not None
    assert unused.state != USED


async def test_edited_arguments_on_the_docket_are_what_runs(world: World) -> None:
    await answered(world, args={"path": "b.txt", "content": "edited"})
    async with world.reeve() as reeve:
        result = await Client(capabilities={}).writes(reeve)

    assert result.success
    assert (world.workspace / "b.txt").read_text() == "edited"
    assert not (world.workspace / "a.txt").exists()


async def test_the_same_question_is_kept_once(world: World) -> None:
    async with world.reeve() as reeve:
        first = await Client(capabilities={}).writes(reeve)
        second = await Client(capabilities={}).writes(reeve)
        kept = await reeve.approvals.list()

    assert first.data == second.data
    assert [matter.state for matter in kept] == [PENDING]


async def test_a_call_too_large_to_be_kept_is_refused(world: World) -> None:
    async with world.reeve() as reeve:
        result = await Client(capabilities={}).writes(reeve, content="z" * 1_100_000)

    assert code(result) is ErrorCode.LIMIT
    assert "cannot be kept for later: 3," in result.to_text()


async def test_answers_survive_being_written_down() -> None:
    request = question()
    given = request.allow(by="Bea", note="once only", args={"path": "b"})

    assert write_answer(given)["args"] == {"path": "b"}
    assert write_answer(request.deny())["granted"] is False


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
        later.decision = Decided(result.meta.binding, {"approved_by": result.meta.approved_by})
        again = await reeve.run(ToolCall(tool="greet", args={"name": "Ann"}, session="s", peer=later))
        other = await reeve.run(ToolCall(tool="greet", args={"name": "Bob"}, session="s", peer=later))

    assert again.success
    assert again.meta.binding == result.meta.binding != ""
    assert code(other) is ErrorCode.PERMISSION
