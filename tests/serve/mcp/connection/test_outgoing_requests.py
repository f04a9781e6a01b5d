"""Requests from the server to the client during a call."""

import asyncio
from typing import Any

import pytest

from tests.serve.mcp.connection.tools import TOOLS
from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.serve.mcp.stdio_client import envelope
from tests.world import World
from toolreeve.core.mcp import PeerError
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.system_info import SystemInfoHandlers


async def test_the_client_is_asked_over_the_same_wire(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize(roots={})
        number = client.begin("tools/call", {"name": "roots", "arguments": {}})
        asked = await client.until("roots/list")
        client.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///a"}]}})

        assert (await client.answer_to(number))["result"]["structuredContent"] == {"roots": [{"uri": "file:///a"}]}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"error": {"code": -1, "message": "no"}}, -1),
        ({"error": "no"}, -32603),
        ({"result": 7}, -32603),
    ],
)
async def test_a_client_that_answers_with_an_error_or_nonsense_is_understood(
    world: World, answer: dict[str, Any], code: int
) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize(roots={})
        number = client.begin("tools/call", {"name": "roots", "arguments": {}})
        asked = await client.until("roots/list")
        client.say({"jsonrpc": "2.0", "id": asked["id"], **answer})
        told = (await client.answer_to(number))["result"]["structuredContent"]

    assert told["refused"]["code"] == code


async def test_a_client_is_never_asked_for_what_it_did_not_declare(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        told = (await client.call("roots"))["structuredContent"]

    assert told["refused"]["message"] == "the client does not support roots"
    assert client.heard == []


async def test_a_modern_client_is_never_asked_during_a_call(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        params = {"name": "roots", "arguments": {}}
        told = await client.modern("tools/call", params, meta=envelope(roots={}))

    assert "cannot be asked" in told["result"]["structuredContent"]["refused"]["message"]


async def test_a_question_is_taken_back_when_its_call_is_cancelled(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize(roots={})
        number = client.begin("tools/call", {"name": "roots", "arguments": {}})
        asked = await client.until("roots/list")
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        withdrawn = await client.until("notifications/cancelled")

    assert withdrawn["params"]["requestId"] == asked["id"]


async def test_a_person_who_is_asked_when_the_client_goes_away_is_not_waited_for() -> None:
    client = InMemoryClient()
    client.connection = McpConnection(SystemInfoHandlers(), client, session="one")
    asked = asyncio.create_task(client.connection.request("elicitation/create", {}))
    await client.next()
    await client.connection.finish(0)

    with pytest.raises(PeerError, match="disconnected"):
        await asked
