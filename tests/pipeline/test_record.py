"""What is recorded and published, when, and with which redactions."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.pipeline.tools import echo, fail
from tests.world import World
from toolreeve import DangerLevel, ErrorCode, ToolCall, ToolError, tool
from toolreeve.core.context import Context
from toolreeve.record.sql.connection import SqlConnection
from toolreeve.record.store import Store


async def test_a_call_with_effects_is_recorded_before_it_begins(world: World) -> None:
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


async def test_a_call_whose_record_cannot_be_written_is_not_begun(world: World) -> None:
    begun = []

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def act() -> None:
        """Act."""
        begun.append(1)

    async with world.reeve(tools=[act]) as reeve, world.database_broken():
        result = await reeve.call("act")

    assert begun == []
    assert result.error is not None
    assert result.error.code is ErrorCode.AUDIT_ERROR


@pytest.mark.parametrize("number", [None, "\ud800", ""])
async def test_no_call_can_hold_up_the_records_of_others(world: World, number: Any) -> None:
    async with world.reeve(tools=[echo]) as reeve:
        await reeve.run(ToolCall(tool="echo", args={"text": "a"}, id=number))
        result = await reeve.call("echo", text="b")
        records = await reeve.audit.show(result.meta.call_id)

    assert [record.kind for record in records] == ["call"]


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


async def test_a_secret_in_place_of_a_tool_name_is_not_published(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "a-very-secret-value")
    async with world.reeve() as reeve, reeve.bus.subscribe() as events:
        await reeve.call("a-very-secret-value")
        event = await anext(events)

    assert event.data["tool_id"] == "[redacted]"


async def test_listeners_receive_the_start_and_end_of_a_call(world: World) -> None:
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


async def test_the_road_never_reads_the_database_on_the_event_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_loop: list[bool] = []
    read = Store.read_blocking

    def watch(store: Store, query: Callable[[SqlConnection], Any]) -> Any:
        on_loop.append(asyncio._get_running_loop() is not None)
        return read(store, query)

    async def approve(_: Any) -> bool:
        return True

    monkeypatch.setattr(Store, "read_blocking", watch)
    async with world.reeve(approve=approve) as reeve:
        written = await reeve.call("write_file", path="a.txt", content="x")
        undone = await reeve.call("undo", call_id=written.meta.call_id)

    assert undone.success
    assert not (world.workspace / "a.txt").exists()
    assert len(on_loop) >= 2, "before the decision, and again after the approval"
    assert not any(on_loop)


async def test_a_blocking_tool_is_screened_in_a_thread_and_its_refusal_is_the_result(world: World) -> None:
    threads: list[threading.Thread] = []

    def refuse(_: Any, __: Context) -> None:
        threads.append(threading.current_thread())
        raise ToolError(ErrorCode.TOOL_CHANGED, "not accepted yet")

    @tool(danger=DangerLevel.SAFE, blocking=True, screen=refuse)
    async def look() -> None:
        """Look."""

    async with world.reeve(tools=[look]) as reeve:
        result = await reeve.call("look")

    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.TOOL_CHANGED, "not accepted yet")
    assert result.meta.verdict.layer == "tool"
    assert threading.main_thread() not in threads
