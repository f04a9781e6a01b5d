"""Whatever a tool does with its own task, its caller gets a result."""

import asyncio

import pytest

from tests.world import World
from toolreeve import DangerLevel, tool


@tool(name="at_once", danger=DangerLevel.SAFE, inline=True)
async def cancels_at_once() -> str:
    """Give up before anything was waited for."""
    raise asyncio.CancelledError


@tool(name="later", danger=DangerLevel.SAFE, inline=True)
async def cancels_later() -> str:
    """Give up in the midst."""
    await asyncio.sleep(0)
    raise asyncio.CancelledError


@tool(name="alone", danger=DangerLevel.SAFE)
async def cancels_alone() -> str:
    """Give up in a task of its own."""
    await asyncio.sleep(0)
    raise asyncio.CancelledError


@pytest.mark.parametrize("name", ["at_once", "later", "alone"])
async def test_a_tool_that_cancels_itself_has_failed_and_its_caller_goes_on(world: World, name: str) -> None:
    async with world.reeve(tools=[cancels_at_once, cancels_later, cancels_alone]) as reeve:
        result = await reeve.call(name)
        (record,) = await reeve.audit.recent(last_n=1, filters={"tool": name})

    assert result.error is not None
    assert (result.error.code, result.error.message) == ("E_CANCELLED", "the tool cancelled itself")
    assert record["code"] == "E_CANCELLED"


async def test_a_caller_that_is_cancelled_is_not_taken_for_a_tool_that_cancels_itself(world: World) -> None:
    waits = asyncio.Event()

    @tool(danger=DangerLevel.SAFE, inline=True)
    async def wait() -> str:
        """Wait for ever."""
        waits.set()
        await asyncio.Event().wait()
        return ""

    async with world.reeve(tools=[wait]) as reeve:
        calling = asyncio.create_task(reeve.call("wait"))
        await waits.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
