"""The road, end to end: what every call meets, whatever happens on it."""

import asyncio
import threading
from typing import Any

import pytest

from tests.world import World
from toolreeve import Caching, CircuitBreaker, DangerLevel, ErrorCode, RateLimit, Retry, ToolCall, ToolError, tool
from toolreeve.core.context import Context
from toolreeve.core.result import Failure


@tool(danger=DangerLevel.SAFE)
async def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@tool(danger=DangerLevel.MEDIUM)
async def change(what: str = "") -> str:
    """Change something."""
    return f"changed {what}"


async def test_a_call_comes_back_as_a_result_with_its_whole_story(world: World) -> None:
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
async def test_arguments_that_do_not_fit_are_answered_and_recorded_once(world: World, args: Any) -> None:
    async with world.reeve(tools=[echo]) as reeve:
        result = await reeve.run(ToolCall(tool="echo", args=args))
        records = await reeve.audit.show(result.meta.call_id)

    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMS
    assert len(records) == 1


@tool(danger=DangerLevel.SAFE)
async def fail() -> None:
    """Raise."""
    raise KeyError("lost")


@tool(danger=DangerLevel.SAFE)
async def strange() -> object:
    """Return what JSON cannot say."""
    return {"x": {1, 2, 3}}


@tool(danger=DangerLevel.SAFE)
async def leave() -> None:
    """Try to end the program."""
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("name", "says"),
    [("fail", "KeyError: 'lost'"), ("strange", "JSON cannot say"), ("leave", "SystemExit")],
)
async def test_a_tool_that_misbehaves_is_a_result_and_not_a_crash(world: World, name: str, says: str) -> None:
    async with world.reeve(tools=[fail, strange, leave]) as reeve:
        result = await reeve.call(name)
        records = await reeve.audit.show(result.meta.call_id)

    assert result.error is not None
    assert result.error.code is ErrorCode.TOOL_EXEC
    assert says in result.error.message
    assert [record.kind for record in records] == ["call"]


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


async def test_cancelling_a_call_answers_its_caller_with_a_code(world: World) -> None:
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


async def test_a_caller_who_is_cancelled_leaves_one_record(world: World) -> None:
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


async def test_what_asks_is_refused_where_nobody_can_be_asked(world: World) -> None:
    async with world.reeve(tools=[change]) as reeve:
        result = await reeve.call("change")

    assert result.error is not None
    assert result.error.code is ErrorCode.PERMISSION
    assert "Tool 'change' (danger=medium) requires approval" in result.error.message


async def test_an_approved_call_runs_and_says_who_approved(world: World) -> None:
    async def approve(request: Any) -> bool:
        return bool(request.tool == "change")

    async with world.reeve(tools=[change], approve=approve) as reeve:
        result = await reeve.call("change", what="it")

    assert result.output == "changed it"
    assert result.meta.approved_by


async def test_a_refused_call_does_not_run(world: World) -> None:
    async def refuse(_: Any) -> bool:
        return False

    async with world.reeve(tools=[change], approve=refuse) as reeve:
        result = await reeve.call("change")

    assert result.error is not None
    assert result.error.code is ErrorCode.APPROVAL_DENIED
    assert result.meta.attempts == 0


async def test_edited_arguments_are_validated_again(world: World) -> None:
    async def edit(request: Any) -> Any:
        return request.allow(args={"what": ["not", "text"]})

    async with world.reeve(tools=[change], approve=edit) as reeve:
        result = await reeve.call("change", what="it")

    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMS


async def test_edited_arguments_are_the_ones_that_run_and_are_recorded(world: World) -> None:
    async def edit(request: Any) -> Any:
        return request.allow(args={"what": "something else"})

    async with world.reeve(tools=[change], approve=edit) as reeve:
        result = await reeve.call("change", what="it")
        records = await reeve.audit.show(result.meta.call_id)

    assert result.output == "changed something else"
    assert records[-1].body["args"] == {"what": "something else"}


async def test_a_failing_tool_is_tried_again_as_often_as_it_says(world: World) -> None:
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


async def test_what_may_have_happened_is_never_repeated(world: World) -> None:
    tries = []

    @tool(danger=DangerLevel.LOW, read_only=False, retry=Retry(attempts=3, initial_delay=0.001))
    async def pay() -> None:
        """Pay, and fail afterwards."""
        tries.append(1)
        raise ToolError(ErrorCode.UPSTREAM, "no answer")

    async with world.reeve(tools=[pay]) as reeve:
        await reeve.call("pay")

    assert len(tries) == 1


async def test_a_tool_that_keeps_failing_rests(world: World) -> None:
    @tool(danger=DangerLevel.SAFE, circuit_breaker=CircuitBreaker(failure_threshold=2))
    async def broken() -> None:
        """Fail."""
        raise ToolError(ErrorCode.UPSTREAM, "away")

    async with world.reeve(tools=[broken]) as reeve:
        codes = [(await reeve.call("broken")).error for _ in range(3)]

    assert [error.code for error in codes if error] == [ErrorCode.UPSTREAM, ErrorCode.UPSTREAM, ErrorCode.CIRCUIT_OPEN]


async def test_an_answer_that_is_known_is_not_worked_out_again(world: World) -> None:
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


async def test_a_cached_answer_is_for_nobody_else(world: World) -> None:
    from toolreeve import Principal

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
    from toolreeve import ExecutionContext, PermissionPolicy

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


async def test_calls_beyond_the_rate_are_refused_with_when_to_come_back(world: World) -> None:
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
        assert (await reeve.call("rare")).success
    async with world.reeve(tools=[rare]) as reeve:
        assert not (await reeve.call("rare")).success


async def test_no_more_than_the_allowed_number_run_at_once(world: World) -> None:
    running, most = 0, 0

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
    from toolreeve import ExecutionContext, PermissionPolicy

    @tool(danger=DangerLevel.SAFE, estimated_cost=0.1)
    async def costly() -> None:
        """Cost a dime."""
        await asyncio.sleep(0)

    policy = PermissionPolicy(ExecutionContext(budget_limit=1.0))
    async with world.reeve(tools=[costly], policy=policy) as reeve:
        results = await asyncio.gather(*(reeve.call("costly") for _ in range(100)))

    assert sum(result.success for result in results) == 10
    assert {result.error.code for result in results if result.error} == {ErrorCode.BUDGET}


async def test_a_call_with_effects_is_written_down_before_it_begins(world: World) -> None:
    seen: list[str] = []

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def act(ctx: Context) -> None:
        """Look at the record from inside."""
        seen.extend(record.kind for record in await reeve.audit.show(ctx.call.id))

    async with world.reeve(tools=[act]) as reeve:
        result = await reeve.call("act")
        records = await reeve.audit.show(result.meta.call_id)

    assert seen == ["intent"]
    assert [record.kind for record in records] == ["intent", "call"]


async def test_a_secret_in_arguments_or_errors_is_never_written(world: World) -> None:
    @tool(danger=DangerLevel.LOW, read_only=False)
    async def login(password: str, note: str) -> None:
        """Fail with the secret in the message."""
        raise ToolError(ErrorCode.TOOL_EXEC, f"could not log in with {note}")

    secret = "ghp_" + "a1B2" * 9
    async with world.reeve(tools=[login]) as reeve:
        await reeve.call("login", password="hunter2hunter2", note=secret)

    written = world.database_bytes()
    assert secret.encode() not in written
    assert b"hunter2hunter2" not in written


async def test_listeners_hear_that_a_call_began_and_ended(world: World) -> None:
    heard: list[dict[str, Any]] = []

    async with world.reeve(tools=[echo, fail]) as reeve:
        reeve.bus.listen(lambda event: heard.append(event.to_dict()))
        await reeve.call("echo", text="a")
        await reeve.call("fail")

    statuses = [(event["data"]["tool_id"], event["data"]["status"]) for event in heard]
    assert statuses == [("echo", "started"), ("echo", "completed"), ("fail", "started"), ("fail", "failed")]
    assert heard[0]["event"] == "tool_execution"
    assert heard[0]["data"]["parameters"] == {"text": "a"}
    assert heard[1]["data"]["output_length"] == 1


async def test_metrics_carry_the_documented_names(world: World) -> None:
    async with world.reeve(tools=[echo, fail]) as reeve:
        await reeve.call("echo", text="a")
        await reeve.call("fail")
        text = reeve.metrics.render()

    assert 'toolreeve_tool_execution_total{error_code="",success="true",tool_name="echo"} 1.0' in text
    assert 'toolreeve_tool_execution_total{error_code="E_TOOL_EXEC",success="false",tool_name="fail"} 1.0' in text
    assert 'toolreeve_tool_execution_duration_seconds_count{tool_name="echo"} 1.0' in text


async def test_a_call_whose_record_cannot_be_written_is_not_begun(world: World) -> None:
    begun = []

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def act() -> None:
        """Act."""
        begun.append(1)

    async with world.reeve(tools=[act]) as reeve, world.database_locked():
        result = await reeve.call("act")

    assert begun == []
    assert result.error is not None
    assert result.error.code is ErrorCode.AUDIT_ERROR
