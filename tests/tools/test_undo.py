"""Undo reaches only the changes that its caller may know of."""

import pytest

from tests.world import World
from toolreeve import ToolCall, Toolreeve
from toolreeve.approval.request import Request
from toolreeve.core.call import Principal, RecordScope, Role
from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import ToolResult

ANN = Principal(user="ann")
BOB = Principal(user="bob")


class Asked:
    """A person who allows everything, and the tools they were asked about."""

    def __init__(self) -> None:
        self.tools: list[str] = []

    async def __call__(self, request: Request) -> bool:
        self.tools.append(request.tool)
        return True


async def run(reeve: Toolreeve, tool: str, session: str, principal: Principal = ANN, /, **args: object) -> ToolResult:
    return await reeve.run(ToolCall(tool=tool, args=args, session=session, principal=principal))


@pytest.mark.parametrize(("session", "principal"), [("b", ANN), ("a", BOB), ("b", BOB)])
@pytest.mark.parametrize("by", ["call_id", "session"])
async def test_the_changes_of_another_session_or_user_cannot_be_undone_nor_seen(
    world: World, session: str, principal: Principal, by: str
) -> None:
    asked = Asked()
    async with world.reeve(approve=asked) as reeve:
        written = await run(reeve, "write_file", "a", path="secret-plan.txt", content="x")
        named = {"call_id": written.meta.call_id} if by == "call_id" else {"session": "a"}
        refused = await run(reeve, "undo", session, principal, **named)
        own = await run(reeve, "undo", "a", ANN, **named)

    assert refused.error is not None
    assert refused.error.code is ErrorCode.INVALID_PARAMS
    assert "secret-plan" not in str(refused.to_dict())
    assert asked.tools == ["write_file", "undo"]
    assert own.success


async def test_an_undo_can_be_undone_by_its_caller_and_by_no_other(world: World) -> None:
    async with world.reeve(approve=Asked()) as reeve:
        written = await run(reeve, "write_file", "a", path="a.txt", content="x")
        undone = await run(reeve, "undo", "a", call_id=written.meta.call_id)
        foreign = await run(reeve, "undo", "b", call_id=undone.meta.call_id)
        own = await run(reeve, "undo", "a", call_id=undone.meta.call_id)

    assert not foreign.success
    assert own.success
    assert (world.workspace / "a.txt").read_text() == "x"


async def test_an_admin_and_the_program_itself_undo_what_anyone_changed(world: World) -> None:
    admin = Principal(user="root", role=Role.ADMIN)
    async with world.reeve(approve=Asked()) as reeve:
        first = await run(reeve, "write_file", "a", path="a.txt", content="x")
        second = await run(reeve, "write_file", "a", path="b.txt", content="x")
        by_admin = await run(reeve, "undo", "z", admin, call_id=first.meta.call_id)
        by_program = await reeve.undo(second.meta.call_id)

    assert by_admin.success
    assert by_program.success
    assert list(world.workspace.iterdir()) == []


async def test_a_user_at_the_command_line_undoes_all_of_their_own_sessions(world: World) -> None:
    async with world.reeve(approve=Asked()) as reeve:
        written = await run(reeve, "write_file", "a", path="a.txt", content="x")
        args = {"call_id": written.meta.call_id}
        call = ToolCall(tool="undo", args=args, session="b", principal=BOB, record_scope=RecordScope.USER)
        foreign = await reeve.run(call)
        call = ToolCall(tool="undo", args=args, session="b", principal=ANN, record_scope=RecordScope.USER)
        own = await reeve.run(call)

    assert not foreign.success
    assert own.success
