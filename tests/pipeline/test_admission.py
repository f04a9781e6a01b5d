"""Rates, concurrency and budgets on the road."""

import asyncio

from tests.world import World
from toolreeve import (
    DangerLevel,
    ErrorCode,
    ExecutionContext,
    PermissionMode,
    PermissionPolicy,
    RateLimit,
    tool,
)


async def test_calls_beyond_the_rate_are_refused_with_a_retry_time(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, rate=RateLimit(calls=2, per=60))
    async def rare() -> None:
        """Run rarely."""

    async with world.reeve(tools=[rare]) as reeve:
        results = [await reeve.call("rare") for _ in range(3)]

    assert [result.success for result in results] == [True, True, False]
    assert results[2].error is not None
    assert results[2].error.code is ErrorCode.RATE_LIMITED


async def test_a_rate_holds_across_a_restart(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, rate=RateLimit(calls=1, per=60))
    async def rare() -> None:
        """Run rarely."""

    async with world.reeve(tools=[rare]) as reeve:
        before = await reeve.call("rare")
    async with world.reeve(tools=[rare]) as reeve:
        after = await reeve.call("rare")

    assert before.success
    assert after.error is not None
    assert after.error.code is ErrorCode.RATE_LIMITED


async def test_no_more_than_the_allowed_number_run_at_once(world: World) -> None:
    running = 0
    most = 0

    @tool(danger=DangerLevel.SAFE, concurrency=2)
    async def busy() -> None:
        """Count how many are here."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    async with world.reeve(tools=[busy]) as reeve:
        await asyncio.gather(*(reeve.call("busy") for _ in range(20)))

    assert most == 2


async def test_a_hundred_concurrent_calls_cannot_overspend_a_budget(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, estimated_cost=0.1)
    async def costly() -> None:
        """Cost a dime."""
        await asyncio.sleep(0)

    policy = PermissionPolicy(ExecutionContext(budget_limit=1.0))
    async with world.reeve(tools=[costly], policy=policy) as reeve:
        results = await asyncio.gather(*(reeve.call("costly") for _ in range(100)))

    assert sum(result.success for result in results) == 10
    assert {result.error.code for result in results if result.error} == {ErrorCode.BUDGET}


async def test_a_call_cancelled_before_it_runs_is_refunded(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, estimated_cost=1.0)
    async def pay() -> str:
        """Cost something."""
        return "paid"

    policy = PermissionPolicy(ExecutionContext(budget_limit=1.0))
    async with world.reeve(tools=[pay], policy=policy) as reeve:
        for steps in range(1, 9):
            paying = asyncio.create_task(reeve.call("pay"))
            for _ in range(steps):
                await asyncio.sleep(0)
            paying.cancel()
            await asyncio.wait([paying])
            assert paying.cancelled()
        result = await reeve.call("pay")

    assert result.output == "paid"


async def test_bypass_mode_counts_costs_but_does_not_enforce_the_budget(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, estimated_cost=1.0)
    async def pay() -> str:
        """Cost something."""
        return "paid"

    policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS, budget_limit=0.5))
    async with world.reeve(tools=[pay], policy=policy) as reeve:
        in_bypass = await reeve.call("pay")
        policy.context.mode = PermissionMode.DEFAULT
        afterwards = await reeve.call("pay")

    assert in_bypass.output == "paid"
    assert afterwards.error is not None
    assert afterwards.error.message == "Budget exceeded: $1.00 spent, $0.00 remaining, tool needs $1.00"
