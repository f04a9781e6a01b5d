"""Change notifications, and which of them a slow client may miss."""

import asyncio
from typing import Any

import pytest

from tests.serve.mcp.connection.tools import TOOLS
from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.serve.mcp.stdio_client import envelope
from tests.world import World
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.door import new_handlers, new_view


async def test_tools_that_come_and_go_are_announced_once_a_moment(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with connect(reeve) as client:
        await client.initialize()
        reeve.tools.unregister("echo")
        reeve.tools.unregister("steps")
        told = await client.next()
        names = [each["name"] for each in (await client.ask("tools/list"))["result"]["tools"]]

    assert told == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert client.heard == []
    assert not {"echo", "steps"} & set(names)


async def test_a_client_that_does_not_read_misses_progress_but_no_change(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with connect(reeve) as client:
        await client.initialize()
        client.congested = True
        number = client.begin("tools/call", {"name": "steps", "arguments": {}, "_meta": {"progressToken": 1}})
        reeve.tools.unregister("echo")
        await client.held.wait()
        reeve.tools.unregister("wait")
        await asyncio.sleep(0)
        unread = client.lines.qsize()
        client.read_again()
        await client.answer_to(number)

    assert unread == 0
    assert [each["method"] for each in client.heard] == ["notifications/tools/list_changed"]


async def test_a_listener_hears_what_it_asked_for_and_nothing_else(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with connect(reeve) as client:
        asked = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["file:///a"]}
        number = client.begin("subscriptions/listen", {"notifications": asked, "_meta": envelope()})
        acknowledged = await client.next()
        reeve.tools.unregister("echo")
        told = await client.next()

    mark = {"io.modelcontextprotocol/subscriptionId": number}
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"notifications": {"toolsListChanged": True}, "_meta": mark}
    assert (told["method"], told["params"]) == ("notifications/tools/list_changed", {"_meta": mark})


async def test_a_listener_is_answered_when_the_handlers_close_and_not_when_it_cancels(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with reeve:
        handlers, client = new_handlers(reeve), InMemoryClient()
        client.connection = McpConnection(handlers, client, session="one", view=new_view(reeve))
        params = {"notifications": {"toolsListChanged": True}, "_meta": envelope()}
        left, stayed = client.begin("subscriptions/listen", params), client.begin("subscriptions/listen", params)
        await client.next()
        await client.next()
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": left}})
        await client.modern("server/discover")
        handlers.close()
        ended = await client.answer_to(stayed)
        await client.connection.finish(0)

    assert ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == stayed
    assert client.heard == []


@pytest.mark.parametrize("asked", [None, 7, {"resourceSubscriptions": "file:///a"}, {"resourceSubscriptions": [1]}])
async def test_a_listener_must_say_properly_what_it_wants(world: World, asked: Any) -> None:
    async with connect(world.reeve()) as client:
        assert (await client.modern("subscriptions/listen", {"notifications": asked}))["error"]["code"] == -32602
