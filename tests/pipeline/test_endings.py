"""Every call ends: at its time limit, when it is cancelled, or with its caller."""

import asyncio
import threading
from typing import Any

import pytest

from tests.world import World
from toolreeve import (
    DangerLevel,
    ErrorCode,
    ToolCall,
    tool,
)
from toolreeve.core.result import Failure


@pytest.mark.parametrize("limit", ["soon", 10**400], ids=["text", "huge"])
async def test_a_tool_does_not_run_when_its_time_limit_is_not_a_number(world: World, limit: Any) -> None:
    ran = []

    @tool(danger=DangerLevel.SAFE)
    async def act() -> None:
        """Act."""
        ran.append(1)

    async with world.reeve(tools=[act]) as reeve:
        result = await reeve.run(ToolCall(tool="act", args={}, timeout=limit))
        await asyncio.sleep(0)

    assert not result.success
    assert ran == []


async def test_a_tool_that_hangs_is_ended_at_its_time_limit(world: World) -> None:
    ended = asyncio.Event()

    @tool(danger=DangerLevel.SAFE, timeout=0.05)
    async def hang() -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with world.reeve(tools=[hang]) as reeve:
        result = await reeve.call("hang")

    assert result.outcome == Failure(ErrorCode.TIMEOUT, "the tool did not finish within 0.05 s", retryable=True)
    assert ended.is_set()


async def test_a_function_that_spins_is_ended_at_its_time_limit(world: World) -> None:
    ended = threading.Event()

    @tool(danger=DangerLevel.SAFE, timeout=0.05)
    def spin() -> None:
        """Never end."""
        try:
            while True:
                pass
        finally:
            ended.set()

    async with world.reeve(tools=[spin]) as reeve:
        result = await reeve.call("spin")
        assert await asyncio.to_thread(ended.wait, 5)

    assert result.error is not None
    assert result.error.code is ErrorCode.TIMEOUT


async def test_a_tool_that_swallows_its_cancellation_cannot_hold_its_caller(world: World) -> None:
    release = asyncio.Event()

    @tool(danger=DangerLevel.SAFE, timeout=0.05)
    async def stubborn() -> None:
        """Do not stop."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with world.reeve(tools=[stubborn]) as reeve:
        result = await reeve.call("stubborn")
        release.set()

    assert result.error is not None
    assert "may still be running" in result.error.message


async def test_cancelling_a_call_returns_a_code_to_its_caller(world: World) -> None:
    begun = asyncio.Event()

    @tool(danger=DangerLevel.SAFE)
    async def wait() -> None:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()

    async with world.reeve(tools=[wait]) as reeve:
        call = ToolCall(tool="wait", args={})
        running = asyncio.create_task(reeve.run(call))
        await begun.wait()
        assert reeve.cancel(call.id)
        result = await running
        records = await reeve.audit.show(call.id)

    assert result.error is not None
    assert result.error.code is ErrorCode.CANCELLED
    assert [record.body["code"] for record in records] == ["E_CANCELLED"]
    assert not reeve.cancel(call.id)


async def test_a_call_that_is_revoked_while_its_record_is_written_is_answered_with_its_outcome(world: World) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def act() -> str:
        """Act."""
        begun.set()
        await end.wait()
        return "acted"

    call = ToolCall(tool="act", args={})
    async with world.reeve(tools=[act]) as reeve, reeve.bus.subscribe() as events:
        acting = asyncio.create_task(reeve.run(call))
        await begun.wait()
        async with world.database_locked():
            end.set()
            while (await anext(events)).data["status"] != "completed":
                pass
            revoked = (reeve.cancel(call.id), reeve.cancel(call.id))
            await asyncio.sleep(0)
        result = await acting

    assert revoked == (True, False)
    assert result.output == "acted"


async def test_a_cancelled_caller_leaves_one_record(world: World) -> None:
    begun = asyncio.Event()

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def wait() -> None:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()

    async with world.reeve(tools=[wait]) as reeve:
        call = ToolCall(tool="wait", args={})
        running = asyncio.create_task(reeve.run(call))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        records = await reeve.audit.show(call.id)

    assert [record.kind for record in records] == ["intent", "call"]
    assert records[-1].body["code"] == "E_CANCELLED"
