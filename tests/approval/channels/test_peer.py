"""Approvals by a caller of any protocol, through `Peer` alone."""

from typing import Any

import pytest

from tests.approval.people import code
from tests.callers import PlainCaller
from tests.world import World
from toolreeve import Toolreeve, ToolResult
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode
from toolreeve.core.peer import DEFERRED, NoAnswer, PeerUnavailable, PriorAnswer, PriorApproval


async def write(reeve: Toolreeve, peer: PlainCaller) -> ToolResult:
    args = {"path": "a.txt", "content": "x"}
    return await reeve.run(ToolCall(tool="write_file", args=args, session="s", peer=peer))


async def test_a_caller_is_asked_while_its_call_waits(world: World) -> None:
    caller = PlainCaller(lambda request: request.allow())
    async with world.reeve() as reeve:
        result = await write(reeve, caller)

    assert result.success
    assert result.meta.approved_by is not None
    assert result.meta.approved_by.endswith("via client")
    assert [request.tool for request in caller.requests] == ["write_file"]


async def test_a_denial_of_the_caller_is_a_denial(world: World) -> None:
    async with world.reeve() as reeve:
        result = await write(reeve, PlainCaller(lambda request: request.deny(note="use b.txt")))

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert "use b.txt" in result.to_text()


def _unavailable(_: Any) -> Any:
    raise PeerUnavailable("hung up")


def _unclear(_: Any) -> Any:
    raise NoAnswer("shrugged")


@pytest.mark.parametrize("answer", [_unavailable, _unclear, lambda _: True, lambda _: None, lambda _: DEFERRED])
async def test_anything_but_an_answer_lets_nothing_run(world: World, answer: Any) -> None:
    async with world.reeve() as reeve:
        result = await write(reeve, PlainCaller(answer))

    assert code(result) is ErrorCode.APPROVAL_PENDING, "it stays open for a person"
    assert not (world.workspace / "a.txt").exists()


async def test_a_deferring_caller_brings_the_answer_with_a_later_call(world: World) -> None:
    caller = PlainCaller(defers=True)
    async with world.reeve() as reeve:
        first = await write(reeve, caller)
        question = caller.requests[0]
        caller.decision = PriorAnswer(
            binding=question.binding,
            question=question.id,
            asked=1.0,
            read=lambda request: request.allow(by="Bea"),
        )
        second = await write(reeve, caller)

    assert code(first) is ErrorCode.APPROVAL_PENDING
    assert second.success
    assert second.meta.approved_by == "Bea"


async def test_a_decision_about_another_call_is_not_used(world: World) -> None:
    caller = PlainCaller(defers=True)
    caller.decision = PriorApproval(binding="another call", by="Bea")
    async with world.reeve() as reeve:
        result = await write(reeve, caller)

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert not (world.workspace / "a.txt").exists()
