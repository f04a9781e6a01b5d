"""Pending approvals: stored questions, and their later answers."""

import json
from typing import Any

from tests.approval.clients import Client
from tests.approval.people import code, question
from tests.world import World
from toolreeve.approval.pending import read_question, write_answer
from toolreeve.core.call import Principal
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.record.pending_table import PENDING, USED, PendingRow

GRANT = {"granted": True, "by": "Bea", "scope": "once", "note": "", "args": None}


async def answered(world: World, **answer: Any) -> PendingRow:
    """A question that was kept, and somebody's answer to it."""
    async with world.reeve() as reeve:
        await Client(capabilities={}).writes(reeve)
        (matter,) = await reeve.approvals.store.list()
        assert await reeve.approvals.store.decide(matter.id, GRANT | answer)
    return matter


async def test_with_nobody_to_ask_the_whole_question_is_stored(world: World) -> None:
    async with world.reeve() as reeve:
        result = await Client(capabilities={}).writes(reeve)
    async with world.reeve() as reeve:
        (matter,) = await reeve.approvals.store.list()

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert result.data == {"status": "pending", "approval_id": matter.id, "expires": matter.expires}
    assert f"The approval {matter.id!r} is pending: a person must decide it" in result.to_text()
    assert "toolreeve approvals" not in json.dumps(result.to_mcp()), "no command that a model could run itself"
    request = read_question(matter.id, matter.question)
    assert (request.tool, request.danger, request.session) == ("write_file", DangerLevel.MEDIUM, "s")
    assert request.args == {"path": "a.txt", "content": "x", "append": False} or request.args["content"] == "x"
    assert "+x" in request.preview


async def test_without_a_client_nothing_is_kept_and_the_call_is_refused(world: World) -> None:
    async with world.reeve() as reeve:
        result = await reeve.call("write_file", path="a.txt", content="x")
        kept = await reeve.approvals.store.list(pending_only=False)

    assert code(result) is ErrorCode.PERMISSION
    assert kept == []


async def test_the_same_call_again_uses_what_was_answered_meanwhile_once(world: World) -> None:
    await answered(world)
    async with world.reeve() as reeve:
        first = await Client(capabilities={}).writes(reeve)
        second = await Client(capabilities={}).writes(reeve)

    assert first.success
    assert first.meta.approved_by == "Bea"
    assert code(second) is ErrorCode.APPROVAL_PENDING


async def test_a_stored_denial_is_reported_once_with_its_note(world: World) -> None:
    await answered(world, granted=False, note="ask Carl")
    async with world.reeve() as reeve:
        result = await Client(capabilities={}).writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert "refused by Bea: ask Carl" in result.to_text()


async def test_a_stored_answer_fits_no_other_call_or_caller(world: World) -> None:
    matter = await answered(world)
    eve = Principal(user="eve")
    async with world.reeve() as reeve:
        results = [
            await Client(capabilities={}).writes(reeve, content="other"),
            await Client(capabilities={}, session="t").writes(reeve),
            await Client(capabilities={}).writes(reeve, principal=eve),
        ]
        unused = await reeve.approvals.store.find(matter.id)

    assert [code(result) for result in results] == [ErrorCode.APPROVAL_PENDING] * 3
    assert unused is not None
    assert unused.state != USED


async def test_arguments_edited_in_a_stored_answer_are_what_runs(world: World) -> None:
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
        kept = await reeve.approvals.store.list()

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
