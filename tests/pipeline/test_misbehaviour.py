"""Tools that raise, exit, overflow or return nonsense: a result and a record, never a crash."""

import pytest

from tests.pipeline.tools import fail
from tests.world import World
from toolreeve import DangerLevel, ErrorCode, tool


@tool(danger=DangerLevel.SAFE)
async def strange() -> object:
    """Return what JSON cannot say."""
    return {"x": {1, 2, 3}}


@tool(danger=DangerLevel.SAFE)
async def leave() -> None:
    """Try to end the program."""
    raise SystemExit(3)


class Beyond(BaseException):
    """Not an Exception, and nobody's to catch."""


@tool(danger=DangerLevel.SAFE)
async def escape() -> None:
    """Raise past every `except Exception`."""
    raise Beyond("out")


@tool(danger=DangerLevel.SAFE)
def escape_from_thread() -> None:
    """The same, from a plain function."""
    raise Beyond("out")


@tool(danger=DangerLevel.SAFE)
async def stop() -> None:
    """Pretend to be a generator that is closed."""
    raise GeneratorExit


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@tool(danger=DangerLevel.SAFE)
async def mumble() -> None:
    """Fail and be unable to say why."""
    raise Mute


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fail", "KeyError: 'lost'"),
        ("strange", "that is not JSON"),
        ("leave", "SystemExit"),
        ("escape", "Beyond: out"),
        ("escape_from_thread", "Beyond: out"),
        ("stop", "GeneratorExit"),
        ("mumble", "Mute: "),
    ],
)
async def test_a_tool_that_misbehaves_is_a_result_and_not_a_crash(world: World, name: str, says: str) -> None:
    async with world.reeve(tools=[fail, strange, leave, escape, escape_from_thread, stop, mumble]) as reeve:
        result = await reeve.call(name)
        records = await reeve.audit.show(result.meta.call_id)

    assert result.error is not None
    assert result.error.code is ErrorCode.TOOL_EXEC
    assert says in result.error.message
    assert [record.kind for record in records] == ["call"]


async def test_the_message_of_a_failing_tool_is_cut_to_a_readable_length(world: World) -> None:
    @tool(danger=DangerLevel.SAFE)
    async def shout() -> None:
        """Fail at length."""
        raise ValueError("x" * 50_000_000)

    async with world.reeve(tools=[shout]) as reeve:
        result = await reeve.call("shout")

    assert result.error is not None
    assert len(result.error.message) < 5_000
    assert "(50000000 characters)" in result.error.message
