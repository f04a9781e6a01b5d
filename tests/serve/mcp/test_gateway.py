import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.serve.mcp.stdio_client import envelope
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.gateway import _may_expand_to
from toolreeve.serve.mcp.tool_view import ToolView

LIBRARY = str(Path(__file__).parent / "library_server.py")


def libraries(world: World, *names: str, **options: Any) -> Toolreeve:
    servers: Mapping[str, Any] = {
        name: {"command": sys.executable, "args": [LIBRARY, name], "trusted": True} for name in names
    }
    return world.reeve(mcp_servers=servers, mode=None, **options)


async def read(client: InMemoryClient, uri: str) -> str:
    return str((await client.ask("resources/read", {"uri": uri}))["result"]["contents"][0]["text"])


async def test_what_several_servers_offer_is_one_offer(world: World) -> None:
    async with connect(libraries(world, "one", "two")) as client:
        initialized = (await client.initialize())["result"]["capabilities"]
        resources = (await client.ask("resources/list"))["result"]["resources"]
        templates = (await client.ask("resources/templates/list"))["result"]["resourceTemplates"]
        prompts = (await client.ask("prompts/list"))["result"]["prompts"]

    assert set(initialized) == {"tools", "resources", "prompts", "completions", "logging"}
    assert [each["uri"] for each in resources] == ["one://book/1", "shared://book", "two://book/1"]
    assert resources[0]["annotations"] == {"audience": ["user"]}
    assert [each["uriTemplate"] for each in templates] == ["one://shelf/{n}/book/{m}", "two://shelf/{n}/book/{m}"]
    assert [each["name"] for each in prompts] == ["one__tell", "two__tell"]


async def test_a_resource_is_read_where_it_is_and_by_the_first_where_several_have_it(world: World) -> None:
    async with connect(libraries(world, "one", "two")) as client:
        await client.initialize()
        known = [await read(client, uri) for uri in ("one://book/1", "two://book/1", "shared://book")]
        expanded = await read(client, "two://shelf/3/book/4")
        whole = (await client.ask("resources/read", {"uri": "two://book/1"}))["result"]
        unknown = await client.ask("resources/read", {"uri": "three://book"})

    assert [*known, expanded] == ["read by one", "read by two", "read by one", "read by two"]
    assert whole == {"contents": [{"uri": "two://book/1", "text": "read by two", "_meta": {"kept": True}}]}
    assert unknown["error"] == {"code": -32002, "message": "Resource not found", "data": {"uri": "three://book"}}


async def test_a_resource_that_two_servers_have_is_said_in_the_status_of_the_second(world: World) -> None:
    async with libraries(world, "one", "two") as reeve:
        await reeve.fleet.resources()
        one, two = reeve.fleet.status()

    assert one.problems == ()
    assert two.problems == ("the resource 'shared://book' is left out: server 'one', configured earlier, has it too",)


async def test_the_only_server_is_asked_for_what_it_did_not_list(world: World) -> None:
    async with connect(libraries(world, "one")) as client:
        await client.initialize()

        assert await read(client, "secret://book") == "read by one"


async def test_an_error_of_the_server_is_handed_on_as_it_is(world: World) -> None:
    async with connect(libraries(world, "one")) as client:
        await client.initialize()
        told = await client.ask("resources/read", {"uri": "one://missing"})

    assert told["error"] == {"code": -32002, "message": "no such book", "data": {"shelf": 7}}


async def test_prompts_and_completions_reach_their_server_under_its_own_name(world: World) -> None:
    async with connect(libraries(world, "one", "two")) as client:
        await client.initialize()
        got = await client.ask("prompts/get", {"name": "two__tell", "arguments": {"topic": "x"}})
        asked = {"ref": {"type": "ref/prompt", "name": "two__tell"}, "argument": {"name": "topic", "value": "a"}}
        completed = await client.ask("completion/complete", asked)
        asked = {"ref": {"type": "ref/resource", "uri": "one://shelf/{n}/book/{m}"}, "argument": {"value": "b"}}
        of_template = await client.ask("completion/complete", asked)
        unknown = await client.ask("prompts/get", {"name": "tell"})

    assert got["result"]["messages"][0]["content"]["text"] == "two tell {'topic': 'x'}"
    assert completed["result"]["completion"]["values"] == ["two", '{"type": "ref/prompt", "name": "tell"}', "a"]
    assert of_template["result"]["completion"]["values"][0] == "one"
    assert unknown["error"] == {"code": -32602, "message": "Unknown prompt: tell"}


async def test_upstream_notifications_reach_their_subscribers(world: World) -> None:
    async with connect(libraries(world, "one", policy=None)) as client:
        await client.initialize()
        await client.ask("resources/subscribe", {"uri": "one://book/1"})
        await client.ask("resources/subscribe", {"uri": "one://book/1"})
        await client.call("one__publish")
        told = {(await client.next())["method"] for _ in range(3 - len(client.heard))}
        told |= {each["method"] for each in client.heard}
        await client.ask("resources/unsubscribe", {"uri": "one://book/1"})
        left = await client.call("one__publish")

    assert told == {
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/updated",
    }
    assert left["content"][0]["text"] == ""


async def test_a_client_that_leaves_takes_its_subscriptions_along_and_no_others(world: World) -> None:
    reeve = libraries(world, "one")
    async with connect(reeve) as stays:
        await stays.initialize()
        await stays.ask("resources/subscribe", {"uri": "one://book/1"})
        leaves = InMemoryClient()
        leaves.connection = McpConnection(stays.handlers, leaves, session="other", view=ToolView(reeve.tools))
        await leaves.initialize()
        await leaves.ask("resources/subscribe", {"uri": "one://book/1"})
        await leaves.ask("resources/subscribe", {"uri": "shared://book"})
        await leaves.connection.finish(0)
        left = await stays.call("one__publish")

    assert left["content"][0]["text"] == "one://book/1"


async def test_a_listener_of_the_modern_era_hears_of_its_resources_until_it_stops(world: World) -> None:
    async with connect(libraries(world, "one")) as client:
        asked = {"resourceSubscriptions": ["one://book/1"], "resourcesListChanged": False}
        number = client.begin("subscriptions/listen", {"notifications": asked, "_meta": envelope()})
        acknowledged = await client.next()
        await client.modern("tools/call", {"name": "one__publish", "arguments": {}})
        told = client.heard[0] if client.heard else await client.next()
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        left = await client.modern("tools/call", {"name": "one__publish", "arguments": {}})

    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": ["one://book/1"]}
    assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "one://book/1")
    assert left["result"]["resultType"] == "complete"


async def test_a_toolset_without_a_server_hides_all_that_it_offers(world: World) -> None:
    async with connect(libraries(world, "one", "two"), tools="two,calculate") as client:
        await client.initialize()
        resources = (await client.ask("resources/list"))["result"]["resources"]
        prompts = (await client.ask("prompts/list"))["result"]["prompts"]
        refused = [
            await client.ask("resources/read", {"uri": "one://book/1"}),
            await client.ask("prompts/get", {"name": "one__tell"}),
            await client.ask("tools/call", {"name": "one__resources/read", "arguments": {"uri": "one://book/1"}}),
        ]

    assert [each["uri"] for each in resources] == ["two://book/1", "shared://book"]
    assert [each["name"] for each in prompts] == ["two__tell"]
    assert "read by one" not in str(refused)
    assert all("error" in each for each in refused[1:])


async def test_what_a_server_is_asked_is_on_record(world: World) -> None:
    reeve = libraries(world, "one")
    async with connect(reeve) as client:
        await client.initialize()
        await read(client, "one://book/1")
        recorded = await reeve.audit.recent(last_n=5, filters={"tool": "one__resources/read"})

    assert recorded


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {}),
        ("resources/read", {"uri": 7}),
        ("resources/list", {"cursor": "x"}),
        ("resources/list", {"cursor": "LTE="}),
        ("prompts/get", {"name": ""}),
        ("completion/complete", {"ref": "one", "argument": {}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": 7}, "argument": {}}),
        ("resources/subscribe", {}),
    ],
)
async def test_invalid_requests_are_refused(world: World, method: str, params: dict[str, Any]) -> None:
    async with connect(libraries(world, "one")) as client:
        await client.initialize()

        assert (await client.ask(method, params))["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "completion/complete", "resources/subscribe"])
async def test_without_servers_there_are_only_tools(world: World, method: str) -> None:
    async with connect(world.reeve()) as client:
        await client.initialize()

        assert (await client.ask(method, {}))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("a://{x}", "a://anything/at/all", True),
        ("a://{x}/end", "a://1/end", True),
        ("a://{x}/end", "a://1/other", False),
        ("a://{x}/b/{y}", "a://1/b/2", True),
        ("a://{x}/b/{y}", "a://1/c/2", False),
        ("a://fixed", "a://fixed", True),
        ("a://ab{x}ba", "a://aba", False),
        ("{+all}", "whatever", True),
    ],
)
def test_a_template_is_known_by_its_fixed_parts(template: str, uri: str, fits: bool) -> None:
    assert _may_expand_to(template, uri) is fits
