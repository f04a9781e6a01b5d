"""The limiters of one process, through admission and on their own."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.execution.actions import action
from tests.world import World
from toolreeve import Caching, CircuitBreaker, DangerLevel, ToolCall, tool
from toolreeve.core.action import Action
from toolreeve.core.context import ProgramBounds, unbound
from toolreeve.core.errors import ToolError
from toolreeve.core.limits import Limits
from toolreeve.core.result import Meta, Output
from toolreeve.execution.executor import Executor
from toolreeve.execution.limiters import LocalBreakers, LocalCaches, LocalConcurrency

SETTINGS = CircuitBreaker(failure_threshold=1, recovery_timeout=30, monitoring_period=60)


def now() -> float:
    return 0.0


def cached() -> Action:
    made = action()
    return replace_limits(made, Limits(caching=Caching(ttl=60)))


def replace_limits(made: Action, limits: Limits) -> Action:
    made.tool = replace(made.tool, spec=replace(made.tool.spec, limits=limits))
    return made


async def test_a_result_of_a_tool_that_was_replaced_meanwhile_is_not_served_for_the_new_one() -> None:
    caches = LocalCaches(now)
    old = await caches.open(cached())
    caches.forget("act")
    await caches.open(cached())
    assert old is not None

    await old.store(Output(data={"result": "old"}))

    new = await caches.open(cached())
    assert new is not None
    assert new.output is None


async def test_a_failure_of_a_tool_that_was_replaced_meanwhile_does_not_open_the_breaker_of_the_new_one() -> None:
    breakers = LocalBreakers(now)
    old = await breakers.enter("act", SETTINGS)
    breakers.forget("act")
    await breakers.enter("act", SETTINGS)

    await old.leave(failed=True, completed=True)

    assert breakers.states() == {"act": "closed"}


async def test_a_caller_that_leaves_the_queue_gives_back_the_place_it_had() -> None:
    concurrency = LocalConcurrency(1)
    release = await concurrency.acquire("other", None)
    waiting = asyncio.ensure_future(concurrency.acquire("act", 1))
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.wait([waiting])
    release()

    async with asyncio.timeout(30):
        (await concurrency.acquire("act", 1))()


async def test_the_breaker_of_a_tool_refuses_after_its_failures() -> None:
    breakers = LocalBreakers(now)
    await (await breakers.enter("act", SETTINGS)).leave(failed=True, completed=True)

    with pytest.raises(ToolError, match="circuit breaker open"):
        await breakers.enter("act", SETTINGS)


async def test_a_call_travels_the_same_road_wherever_its_executor_runs_it(world: World) -> None:
    class Elsewhere:
        async def run(self, action: Action, meta: Meta, _: Callable[[], ProgramBounds] = unbound) -> Output:
            meta.attempts = 1
            return Output(data={"result": f"{action.spec.name} elsewhere"}, main=f"{action.spec.name} elsewhere")

        async def close(self) -> int:
            return 0

    @tool(danger=DangerLevel.SAFE)
    async def here() -> str:
        """Say where it runs."""
        return "here"

    async with world.reeve(tools=[here]) as reeve:
        executor: Executor = Elsewhere()
        road = replace(reeve._parts.pipeline, executor=executor)

        result = await road.run(ToolCall(tool="here", args={}))
        records = await reeve.audit.list(limit=1)

    assert (result.output, records[0].call_id) == ("here elsewhere", result.meta.call_id)
