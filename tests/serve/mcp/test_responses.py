"""However a plain call ends, its client is answered or its connection closed."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.serve.mcp.http_server import HEADERS, Sleeper, request, serving
from tests.serve.raw_http import connection, post
from tests.world import World
from toolreeve import DangerLevel, tool

TIMES = 20


@tool(danger=DangerLevel.SAFE)
def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(danger=DangerLevel.SAFE, inline=True)
def stray() -> str:
    """Cancel itself, as nobody asked."""
    raise asyncio.CancelledError


@tool(danger=DangerLevel.HIGH)
def erase() -> str:
    """Do something that must be asked about."""
    return "erased"


def call(name: str, **arguments: Any) -> bytes:
    shown = {"host": "127.0.0.1", **HEADERS, "mcp-method": "tools/call", "mcp-name": name}
    headers = [(name.encode(), value.encode()) for name, value in shown.items()]
    return post(headers, json.dumps(request("tools/call", {"name": name, "arguments": arguments})).encode())


async def codes(world: World, name: str) -> list[str]:
    """What the record says of the calls of a tool."""
    async with world.reeve() as later:
        return [each["code"] for each in await later.audit.recent(last_n=TIMES, filters={"tool": name})]


async def test_a_tool_that_cancels_itself_does_not_close_the_connection(world: World) -> None:
    async with serving(world.reeve(tools=[stray, echo])) as server, connection(server.url) as line:
        await line.send(call("stray"))
        first = await line.answer()
        await line.send(call("echo", text="still here"))

        assert b"cancelled itself" in first.body
        assert b"still here" in (await line.answer()).body


async def test_a_disconnect_while_a_person_is_asked_withdraws_the_question_and_the_call(world: World) -> None:
    asked, dropped = asyncio.Event(), asyncio.Event()

    async def approve(_: Any) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()
        return True

    async with serving(world.reeve(tools=[erase], approve=approve)) as server:
        async with connection(server.url) as line:
            await line.send(call("erase"))
            await asyncio.wait_for(asked.wait(), TIMES)
        await asyncio.wait_for(dropped.wait(), TIMES)

    assert await codes(world, "erase") == ["E_CANCELLED"]


@pytest.mark.parametrize("keepalive", [0.02, 20.0], ids=["as a stream", "at once"])
@pytest.mark.parametrize("behind", [b"", call("echo", text="next"), b"GARBAGE"], ids=["alone", "before one", "garbage"])
async def test_a_disconnect_during_a_call_cancels_it(world: World, keepalive: float, behind: bytes) -> None:
    sleeper = Sleeper()
    async with serving(world.reeve(tools=[sleeper.tool(), echo]), keepalive=keepalive) as server:
        async with connection(server.url) as line:
            await line.send(call("sleep") + behind)
            await asyncio.wait_for(sleeper.runs.wait(), TIMES)
            if keepalive < 1:
                await line.until(b": keep-alive")
        await asyncio.wait_for(sleeper.ended.wait(), TIMES)

    assert await codes(world, "sleep") == ["E_CANCELLED"]
    assert await codes(world, "echo") == []


@pytest.mark.parametrize("keepalive", [0.02, 20.0], ids=["as a stream", "at once"])
@pytest.mark.parametrize("behind", [b"", call("echo", text="next")], ids=["alone", "before another"])
async def test_a_server_that_stops_ends_what_does_not_end_and_closes(
    world: World, keepalive: float, behind: bytes
) -> None:
    sleeper = Sleeper()
    async with asyncio.timeout(TIMES), AsyncExitStack() as outside:
        async with serving(world.reeve(tools=[sleeper.tool(), echo]), keepalive=keepalive, grace=0.2) as server:
            line = await outside.enter_async_context(connection(server.url))
            await line.send(call("sleep") + behind)
            await sleeper.runs.wait()
        said = await line.rest()

    assert said.startswith(b"HTTP/1.1 200" if keepalive < 1 else b"HTTP/1.1 503")
    assert b"\r\n0\r\n\r\n" not in said
    assert await codes(world, "sleep") == ["E_CANCELLED"]
    assert await codes(world, "echo") == []
