"""Tools as agents that speak of servers see and call them, with `async` and without."""

import asyncio
import inspect
from typing import Any

import pytest

from tests.upstream.server_tables import light, tool
from tests.upstream.servers.light import OWN
from tests.world import World
from toolreeve import Toolreeve

TWELVE = [
    "read_file",
    "write_file",
    "delete_file",
    "list_directory",
    "file_exists",
    "http_get",
    "http_post",
    "http_put",
    "http_delete",
    "bash_command",
    "fetch_url",
    "extract_links",
]


async def test_the_builtin_server_offers_its_twelve_tools(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light()}) as reeve:
        found = await reeve.discover_mcp_tools(server_name="toolreeve_builtin")

    assert [each["name"] for each in found] == [f"mcp__toolreeve_builtin__{name}" for name in TWELVE]
    assert {each["server"] for each in found} == {"toolreeve_builtin"}
    assert all(each["inputSchema"] == each["parameters"] for each in found)


async def test_every_tool_that_is_discovered_can_be_called_by_its_name(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light(danger="safe"), "bare": light(prefix="")}) as reeve:
        for each in await reeve.discover_mcp_tools():
            assert each["name"] in reeve.tools, each


async def test_tools_are_found_by_server_and_by_category(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light({"tools": [tool("a"), tool("b")]})}) as reeve:
        of_server = await reeve.discover_mcp_tools(server_name="s")
        of_category = await reeve.discover_mcp_tools(server_name="toolreeve_builtin", category="file")
        everything = await reeve.discover_mcp_tools()

    assert of_server[0] == {
        "name": "mcp__s__a",
        "description": "does a",
        "inputSchema": {"type": "object"},
        "parameters": {"type": "object"},
        "server": "s",
        "category": "mcp",
        "danger_level": "high",
    }
    assert len(of_category) == 5
    assert len(everything) == 14


async def test_a_server_that_still_connects_is_waited_for(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light()}, await_servers=False) as reeve:
        assert len(await reeve.discover_mcp_tools("s")) == len(OWN)


async def test_a_server_that_nobody_configured_is_no_server(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light()}) as reeve:
        with pytest.raises(ValueError, match="'nobody'"):
            await reeve.discover_mcp_tools(server_name="nobody")
        with pytest.raises(ValueError, match="'nobody'"):
            await reeve.execute_mcp_tool("mcp__nobody__x", {})
        with pytest.raises(ValueError, match="mcp__server__tool"):
            await reeve.execute_mcp_tool("mcp__x", {})


async def test_a_tool_of_a_server_answers_flatly_and_refuses_as_documented(world: World) -> None:
    servers = {"s": light(danger="safe"), "t": light()}
    async with world.reeve(mcp_servers=servers) as reeve:
        flat = await reeve.execute_mcp_tool("mcp__s__echo", {"a": 1})
        missing = await reeve.execute_mcp_tool("mcp__s__nothing", {})
        with pytest.raises(PermissionError):
            await reeve.execute_mcp_tool("mcp__t__echo", {})

    assert flat["success"] is True
    assert flat["isError"] is False
    assert flat["structured_content"] == {"a": 1}
    assert flat["output"] == '{"a": 1}'
    assert missing["isError"] is True
    assert "s__nothing" in missing["error"]


async def test_a_chain_leads_through_servers(world: World) -> None:
    (world.workspace / "in.txt").write_text("carried")
    steps = [
        {"tool_name": "read_file", "params": {"path": "in.txt"}},
        {"tool_name": "mcp__s__echo", "params": {"said": "{{previous.content}}"}},
    ]

    async with world.reeve(mcp_servers={"s": light(danger="safe")}) as reeve:
        results = await reeve.execute_tool_chain(steps)

    assert results[1]["structured_content"] == {"said": "carried"}


def sync(world: World) -> Any:
    return Toolreeve.sync(settings=world.settings(), mcp_servers={"s": light(danger="safe")})


def test_all_of_it_is_there_without_async(world: World) -> None:
    with sync(world) as reeve:
        assert len(reeve.discover_mcp_tools("s")) == len(OWN)
        assert reeve.execute_mcp_tool("mcp__s__echo", {"a": 1})["structured_content"] == {"a": 1}
        assert reeve.execute_tool_chain([{"tool": "s__echo", "args": {"b": 2}}])[0]["structured_content"] == {"b": 2}
        assert reeve.execute_batch([{"tool": "s__echo", "args": {"b": 2}}])[0]["success"] is True


async def test_a_runtime_without_async_works_inside_a_running_loop(world: World) -> None:
    assert asyncio.get_running_loop().is_running()
    with sync(world) as reeve:
        result = reeve.execute_mcp_tool("mcp__s__echo", {"a": 1})

    assert not inspect.isawaitable(result)
    assert result["success"] is True


async def test_documented_names_of_categories_are_known_and_others_are_an_error(world: World) -> None:
    async with world.reeve() as reeve:
        files = await reeve.discover_mcp_tools(category="filesystem")
        network = await reeve.discover_mcp_tools(category="network")
        with pytest.raises(ValueError, match="no tool has the category 'nonsense'; there are"):
            await reeve.discover_mcp_tools(category="nonsense")

    assert {each["category"] for each in files} == {"file"}
    assert {each["category"] for each in network} == {"http", "web"}
