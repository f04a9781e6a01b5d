"""Approvals by the calling client, while its call waits."""

import asyncio
from typing import Any

import pytest

from tests.approval.clients import ACCEPT, Client, gone
from tests.approval.people import Person, code
from tests.world import World
from toolreeve.config import Approval as ApprovalSettings
from toolreeve.core.errors import ErrorCode
from toolreeve.core.mcp import Era

DENY = {"action": "accept", "content": {"decision": "deny"}}


async def test_a_client_that_shows_forms_is_asked_while_its_call_waits(world: World) -> None:
    client = Client(answers=lambda _: ACCEPT)
    async with world.reeve() as reeve:
        result = await client.writes(reeve)

    assert result.success
    assert result.meta.approved_by == "the client's user via client"
    assert client.form.asked[0][0] == "elicitation/create"
    assert "+x" in client.message, "the change is shown as a difference"


async def test_a_session_answer_covers_the_same_session_of_the_same_client_only(world: World) -> None:
    accept = {"action": "accept", "content": {"decision": "allow for this session"}}
    one, other = Client(answers=lambda _: accept), Client(answers=lambda _: DENY, session="t")
    async with world.reeve() as reeve:
        await one.writes(reeve)
        again = await one.writes(reeve, content="y")
        elsewhere = await other.writes(reeve, content="y")

    assert again.success
    assert len(one.form.asked) == 1
    assert code(elsewhere) is ErrorCode.APPROVAL_DENIED


async def test_a_no_tells_the_model_why(world: World) -> None:
    client = Client(answers=lambda _: {"action": "accept", "content": {"decision": "deny", "note": "use b.txt"}})
    async with world.reeve() as reeve:
        result = await client.writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert "refused by the client's user via client: use b.txt" in result.to_text()
    assert not (world.workspace / "a.txt").exists()


@pytest.mark.parametrize(
    "answers", [lambda _: {"action": "cancel"}, lambda _: {"action": "accept"}, lambda _: {"action": "decline"}, gone]
)
async def test_a_dismissed_or_senseless_answer_is_neither_yes_nor_no(world: World, answers: Any) -> None:
    async with world.reeve() as reeve:
        result = await Client(answers=answers).writes(reeve)
        (question,) = await reeve.approvals.store.list()

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert result.data is not None
    assert result.data["approval_id"] == question.id
    assert not (world.workspace / "a.txt").exists()


async def test_the_other_channels_are_asked_at_the_same_time_and_the_form_is_taken_back(world: World) -> None:
    client, person = Client(), Person()
    async with world.reeve(approve=person) as reeve:
        writing = asyncio.create_task(client.writes(reeve))
        await client.form.shown.wait()
        await person.asked.wait()
        person.say(lambda request: request.allow())
        result = await writing

    assert result.meta.approved_by == "person via person"
    assert client.form.withdrawn


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
    assert client.form.withdrawn


async def test_where_the_client_can_show_nothing_the_channels_are_asked(world: World) -> None:
    async with world.reeve(approve=lambda _: True) as reeve:
        result = await Client(Era.MODERN, {}).writes(reeve)

    assert result.success
    assert result.meta.approved_by == "callback"
