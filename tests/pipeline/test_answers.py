"""The road, end to end: the result of a call, also of one that could not begin."""

from typing import Any

import pytest

from tests.pipeline.tools import echo
from tests.world import World
from toolreeve import ErrorCode, ToolCall


async def test_a_call_returns_a_result_with_full_metadata(world: World) -> None:
    async with world.reeve(tools=[echo]) as reeve:
        result = await reeve.call("echo", text="ab", times=2)

    assert result.output == "abab"
    meta = result.to_dict()["meta"]
    assert (meta["tool"], meta["attempts"], meta["cached"]) == ("echo", 1, False)
    assert meta["decision"]["effect"] == "allow"
    assert meta["duration_ms"] > 0


async def test_an_unknown_tool_suggests_the_nearest_and_is_recorded(world: World) -> None:
    async with world.reeve(tools=[echo]) as reeve:
        result = await reeve.call("ecko", text="a")
        records = await reeve.audit.show(result.meta.call_id)

    assert result.error is not None
    assert result.error.code is ErrorCode.TOOL_NOT_FOUND
    assert "echo" in result.error.suggestions
    assert len(records) == 1


@pytest.mark.parametrize(
    "args", [{}, {"text": 1, "times": "x"}, {"text": "a", "extra": True}, {"text": "a\udcff"}, [], None, 7]
)
async def test_invalid_arguments_are_refused_and_recorded_once(world: World, args: Any) -> None:
    async with world.reeve(tools=[echo]) as reeve:
        result = await reeve.run(ToolCall(tool="echo", args=args))
        records = await reeve.audit.show(result.meta.call_id)

    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMS
    assert len(records) == 1
