"""Cached results: per principal, and after the decision."""

from tests.world import World
from toolreeve import Caching, DangerLevel, ExecutionContext, PermissionPolicy, Principal, ToolCall, tool
from toolreeve.core.context import Context


async def test_a_cached_result_is_not_computed_again(world: World) -> None:
    runs = []

    @tool(danger=DangerLevel.SAFE, caching=Caching(ttl=60))
    async def slow(n: int) -> int:
        """Count the runs."""
        runs.append(n)
        return n

    async with world.reeve(tools=[slow]) as reeve:
        results = [await reeve.call("slow", n=n) for n in (1, 1, 2)]

    assert runs == [1, 2]
    assert [(result.output, result.meta.cached) for result in results] == [(1, False), (1, True), (2, False)]


async def test_a_cached_result_is_for_its_principal_only(world: World) -> None:
    runs = []

    @tool(danger=DangerLevel.SAFE, caching=Caching(ttl=60))
    async def whoami(ctx: Context) -> str:
        """Tell who asks."""
        runs.append(1)
        return ctx.principal.user

    async with world.reeve(tools=[whoami]) as reeve:
        calls = [ToolCall(tool="whoami", args={}, principal=Principal(user=user)) for user in ("ann", "bob", "ann")]
        told = [(await reeve.run(call)).output for call in calls]

    assert (told, len(runs)) == (["ann", "bob", "ann"], 2)


async def test_the_decision_comes_before_the_cache(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, caching=Caching(ttl=60))
    async def secret() -> str:
        """Tell a secret."""
        return "s"

    context = ExecutionContext()
    async with world.reeve(tools=[secret], policy=PermissionPolicy(context)) as reeve:
        first = await reeve.call("secret")
        context.denied_tools.add("secret")
        second = await reeve.call("secret")

    assert first.success
    assert second.error is not None
    assert second.error.message == "Tool 'secret' is explicitly disallowed"
