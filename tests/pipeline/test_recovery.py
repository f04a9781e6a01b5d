"""Retry and circuit breaker on the road: what is repeated, what is refused."""

from tests.world import World
from toolreeve import CircuitBreaker, DangerLevel, ErrorCode, Retry, ToolError, tool


async def test_a_failing_tool_is_retried_as_configured(world: World) -> None:
    tries = []

    @tool(danger=DangerLevel.SAFE, retry=Retry(attempts=3, initial_delay=0.001))
    async def flaky() -> str:
        """Fail twice."""
        tries.append(1)
        if len(tries) == 1:
            raise ToolError(ErrorCode.UPSTREAM, "away")
        if len(tries) == 2:
            raise ConnectionError("reset")
        return "there"

    async with world.reeve(tools=[flaky]) as reeve:
        result = await reeve.call("flaky")

    assert (result.output, result.meta.attempts) == ("there", 3)


async def test_a_call_that_may_have_happened_is_never_repeated(world: World) -> None:
    tries = []

    @tool(danger=DangerLevel.LOW, read_only=False, retry=Retry(attempts=3, initial_delay=0.001))
    async def pay() -> None:
        """Pay, and fail afterwards."""
        tries.append(1)
        raise ToolError(ErrorCode.UPSTREAM, "no answer")

    async with world.reeve(tools=[pay]) as reeve:
        await reeve.call("pay")

    assert len(tries) == 1


async def test_repeated_failures_open_the_circuit_breaker(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, circuit_breaker=CircuitBreaker(failure_threshold=2))
    async def broken() -> None:
        """Fail."""
        raise ToolError(ErrorCode.UPSTREAM, "away")

    async with world.reeve(tools=[broken]) as reeve:
        codes = [(await reeve.call("broken")).error for _ in range(3)]

    assert [error.code for error in codes if error] == [ErrorCode.UPSTREAM, ErrorCode.UPSTREAM, ErrorCode.CIRCUIT_OPEN]


async def test_a_missing_target_is_suggested_before_anything_runs(world: World) -> None:
    (world.workspace / "backend" / "tests").mkdir(parents=True)
    async with world.reeve() as reeve:
        result = await reeve.call("run_tests", target="tests")

    assert result.error is not None
    assert result.error.suggestions == ("backend/tests",)


async def test_a_file_in_place_of_a_directory_does_not_suggest_itself(world: World) -> None:
    (world.workspace / "a.txt").write_text("x")
    async with world.reeve() as reeve:
        result = await reeve.call("list_directory", path="a.txt")

    assert result.error is not None
    assert "a.txt" not in result.error.suggestions
