"""Log levels and root changes reach the upstream servers."""

import json
from typing import Any

import pytest
from mcp.client.client import Client

from tests.serve.mcp.http_server import serving
from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.upstream.server_tables import light
from tests.world import World
from toolreeve.core.call import new_id
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.door import new_view

LOGS: dict[str, Any] = {"capabilities": {"tools": {}, "logging": {}}, "answers": {"logging/setLevel": {}}}
SERVERS = {"logs": light(LOGS, danger="safe"), "mute": light(danger="safe")}


async def heard(client: InMemoryClient, server: str = "logs") -> list[Any]:
    """What a server was told besides being called, its greeting left out."""
    told = json.loads((await client.call(f"{server}__heard"))["content"][0]["text"])
    return [each for each in told if isinstance(each, list) and each[0] == "logging/setLevel"]


def levels(told: list[Any]) -> list[str]:
    return [params["level"] for _, params in told]


def another(client: InMemoryClient, reeve: Any) -> InMemoryClient:
    other = InMemoryClient()
    other.connection = McpConnection(client.handlers, other, session=new_id(), view=new_view(reeve))
    return other


async def test_a_server_with_logging_gets_the_log_level(world: World) -> None:
    async with connect(world.reeve(mcp_servers=SERVERS)) as client:
        await client.initialize()
        answer = await client.ask("logging/setLevel", {"level": "warning"})

        assert answer["result"] == {}
        assert levels(await heard(client)) == ["warning"]
        assert await heard(client, "mute") == []


async def test_a_client_that_says_nothing_changes_nothing(world: World) -> None:
    async with connect(world.reeve(mcp_servers=SERVERS)) as client:
        await client.initialize()

        assert await heard(client) == []


async def test_the_client_that_wants_most_is_followed_as_long_as_it_is_there(world: World) -> None:
    reeve = world.reeve(mcp_servers=SERVERS)
    async with connect(reeve) as client:
        other = another(client, reeve)
        for each in (client, other):
            await each.initialize()
        for each, level in ((client, "error"), (other, "debug"), (client, "alert")):
            await each.ask("logging/setLevel", {"level": level})
        await other.connection.finish(0)

        assert levels(await heard(client)) == ["error", "debug", "alert"]


async def test_a_restarted_server_gets_the_log_level_again(world: World) -> None:
    async with connect(world.reeve(mcp_servers=SERVERS)) as client:
        await client.initialize()
        await client.ask("logging/setLevel", {"level": "info"})
        await client.call("logs__die")

        assert levels(await heard(client)) == ["info"]


async def test_servers_hear_that_a_clients_folders_are_others(world: World) -> None:
    async with connect(world.reeve(mcp_servers=SERVERS)) as client:
        await client.initialize(roots={"listChanged": True})
        client.say({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        told = [await client.call(f"{server}__heard") for server in SERVERS]

    assert all("notifications/roots/list_changed" in each["content"][0]["text"] for each in told)


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
async def test_all_of_it_comes_over_http_as_well(world: World) -> None:
    async with (
        serving(world.reeve(mcp_servers=SERVERS)) as server,
        Client(server.url, mode="legacy") as client,
    ):
        await client.session.set_logging_level("notice")
        await client.session.send_roots_list_changed()
        told = (await client.call_tool("logs__heard", {})).model_dump_json()

    assert r"{\"level\": \"notice\"}" in told
    assert "notifications/roots/list_changed" in told
