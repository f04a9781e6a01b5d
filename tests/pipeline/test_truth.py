"""What a result says about its call is true: times, decisions, success, and why it failed."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.network import Answer, web_server
from tests.world import World
from toolreeve import DangerLevel, tool
from toolreeve.approval.request import Request
from toolreeve.config import Network


async def approve_slowly(_: Request) -> bool:
    await asyncio.sleep(0.4)
    return True


async def test_the_duration_is_the_execution_and_the_wait_for_a_person_is_told_apart(world: World) -> None:
    async with world.reeve(approve=approve_slowly) as reeve, reeve.bus.subscribe() as events:
        result = await reeve.call("write_file", path="a.txt", content="x")
        (record,) = await reeve.audit.recent(last_n=1, filters={})
        async with asyncio.timeout(10):
            async for event in events:
                if event.event == "tool_execution" and event.data["status"] == "completed":
                    break

    shown = result.to_dict()["meta"]
    assert shown["waited_ms"] > 380
    assert shown["duration_ms"] < 380
    assert (record["duration_ms"], record["waited_ms"]) == (shown["duration_ms"], shown["waited_ms"])
    assert event.data["execution_time"] == shown["duration_ms"] / 1000


async def test_a_call_that_nobody_waited_for_says_nothing_of_waiting(world: World) -> None:
    async with world.reeve() as reeve:
        result = await reeve.call("get_datetime")

    assert "waited_ms" not in result.to_dict()["meta"]


@pytest.mark.parametrize(
    ("name", "args"),
    [("read_file", {}), ("raed_file", {}), ("run_tests", {"target": "missing"})],
)
async def test_a_call_that_ends_before_it_is_decided_carries_no_decision(
    world: World, name: str, args: dict[str, Any]
) -> None:
    async with world.reeve() as reeve:
        result = await reeve.call(name, args)
        (record,) = await reeve.audit.recent(last_n=1, filters={})

    assert not result.success
    assert result.to_dict()["meta"]["decision"] is None
    assert record["decision"] is None


@tool(danger=DangerLevel.SAFE)
def divide(by: int) -> float:
    """Divide one by a number."""
    return 1 / by


async def test_an_exception_of_a_tool_keeps_its_traceback_for_people_and_not_for_the_model(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="toolreeve"):
        async with world.reeve(tools=[divide]) as reeve:
            result = await reeve.call("divide", by=0)
            (record,) = await reeve.audit.show(result.meta.call_id)
            listed = await reeve.call("get_audit_log")

    assert f"{Path(__file__).name}" in record.body["traceback"]
    assert "return 1 / by" in record.body["traceback"]
    assert "return 1 / by" in caplog.text
    assert "Traceback" not in str(result.to_dict()) + str(result.to_mcp()) + result.to_text()
    assert "Traceback" not in str(listed.data)


async def test_the_flat_success_of_a_request_is_that_of_its_response(world: World) -> None:
    async with web_server(lambda _: Answer(status=404, body=b"no")) as web:
        settings = world.settings(network=Network(allow=(f"127.0.0.1:{web.port}",)))
        async with world.reeve(settings=settings) as reeve:
            flat = await reeve.execute_mcp_tool("http_get", {"url": web.url("/")})

    assert (flat["success"], flat["isError"], flat["status_code"]) == (False, False, 404)


async def test_retryable_is_said_once(world: World) -> None:
    definition = world.workspace.parent / "tools.yaml"
    definition.write_text('tools:\n  e: {danger: safe, script: "echo why >&2; exit 5"}\n')
    async with world.reeve(settings=world.settings(tool_files=(str(definition),))) as reeve:
        shown = (await reeve.call("e")).to_dict()

    assert shown["error"]["retryable"] == shown["meta"]["toolreeve_diagnostics"]["retryable"]
    assert shown["error"]["message"] == "the script exited with 5: why"
