"""How requests end: cancelled, refused, crashed, or with the connection."""

import asyncio
from typing import Any

from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.world import World
from toolreeve import DangerLevel, tool
from toolreeve.serve.mcp.connection import MAX_RUNNING, McpConnection
from toolreeve.serve.mcp.request_context import RequestContext
from toolreeve.system_info import SystemInfoHandlers


async def test_there_is_an_end_to_how_much_runs_at_once() -> None:
    class Slow(SystemInfoHandlers):
        async def call(self, params: Any, context: RequestContext) -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

    client = InMemoryClient()
    client.connection = McpConnection(Slow(), client, session="one")
    await client.initialize()
    for _ in range(MAX_RUNNING):
        client.begin("tools/call", {"name": "wait"})

    refused = await client.ask("tools/call", {"name": "wait"})
    await client.connection.finish(0)

    assert f"limit of {MAX_RUNNING} concurrent requests" in refused["error"]["message"]


async def test_a_cancelled_call_ends_and_is_not_answered(world: World) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool(danger=DangerLevel.SAFE, timeout=600)
    async def linger() -> str:
        """Never end by itself."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with connect(world.reeve(tools=[linger])) as client:
        await client.initialize()
        number = client.begin("tools/call", {"name": "linger", "arguments": {}})
        await began.wait()
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        async with asyncio.timeout(10):
            await ended.wait()
        await client.ask("ping")

    assert client.heard == []
    assert client.lines.empty()


async def test_a_crash_in_a_handler_is_answered_without_its_details() -> None:
    class Broken(SystemInfoHandlers):
        async def call(self, params: Any, context: RequestContext) -> dict[str, Any]:
            raise RuntimeError("/home/somebody/secret")

    client = InMemoryClient()
    client.connection = McpConnection(Broken(), client, session="one")
    await client.initialize()

    assert (await client.ask("tools/call"))["error"] == {"code": -32603, "message": "Internal error"}


async def test_an_answer_that_is_no_json_is_an_error_and_not_silence() -> None:
    class Odd(SystemInfoHandlers):
        async def call(self, params: Any, context: RequestContext) -> dict[str, Any]:
            return {"content": {1, 2}}

    client = InMemoryClient()
    client.connection = McpConnection(Odd(), client, session="one")
    await client.initialize()

    assert (await client.ask("tools/call"))["error"]["code"] == -32603


async def test_requests_that_run_at_the_end_are_answered_with_connection_closed() -> None:
    class Slow(SystemInfoHandlers):
        async def call(self, params: Any, context: RequestContext) -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

    client = InMemoryClient()
    client.connection = McpConnection(Slow(), client, session="one")
    await client.initialize()
    number = client.begin("tools/call")
    await client.connection.finish(0.01)

    assert (await client.answer_to(number))["error"] == {"code": -32000, "message": "Connection closed"}
