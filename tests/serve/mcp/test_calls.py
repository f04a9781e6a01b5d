import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.world import World
from toolreeve import DangerLevel, Principal, Role, tool
from toolreeve.config import Mcp
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.door import new_handlers, new_view
from toolreeve.serve.mcp.initialize import search_instructions
from toolreeve.serve.mcp.startup import StartupResponder
from toolreeve.serve.mcp.tool_view import ToolView

LIGHT = str(Path(__file__).parents[2] / "upstream" / "servers" / "light.py")


@tool(danger=DangerLevel.SAFE)
async def upstream_error() -> str:
    """Fail as a tool elsewhere does."""
    detail = {"jsonrpc": {"code": -32042, "message": "log in first", "data": {"url": "https://example.com"}}}
    raise ToolError(ErrorCode.UPSTREAM, "log in first", detail=detail)


@tool(danger=DangerLevel.SAFE)
async def diagnosed() -> str:
    """Fail with a diagnosis."""
    raise ToolError(ErrorCode.TOOL_EXEC, "no", meta={"diagnostics": {"exit_code": 3}})


@tool(danger=DangerLevel.SAFE)
async def picture() -> Output:
    """Answer as a tool elsewhere does."""
    raw = {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}], "vendor": {"kept": True}}
    return Output(data={}, raw=raw)


@tool(danger=DangerLevel.SAFE)
async def deep(levels: int) -> dict[str, Any]:
    """Answer with something that goes very deep."""
    made: dict[str, Any] = {}
    for _ in range(levels):
        made = {"in": made}
    return made


TOOLS = [upstream_error, diagnosed, picture, deep]


async def test_an_upstream_error_is_passed_on(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        told = await client.ask("tools/call", {"name": "upstream_error"})

    assert told["error"] == {"code": -32042, "message": "log in first", "data": {"url": "https://example.com"}}


async def test_what_an_upstream_server_answers_is_handed_on_unharmed(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        told = await client.call("picture")

    assert told == {
        "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}],
        "vendor": {"kept": True},
    }


async def test_a_diagnosis_comes_along_beside_the_result(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        told = await client.call("diagnosed")

    assert told["isError"] is True
    assert told["_meta"] == {"toolreeve_diagnostics": {"exit_code": 3}}


@pytest.mark.parametrize("levels", [200, 300, 900])
async def test_an_answer_that_goes_very_deep_is_an_answer_or_an_error(world: World, levels: int) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        number = client.begin("tools/call", {"name": "deep", "arguments": {"levels": levels}})
        async with asyncio.timeout(10):
            line = await client.lines.get()

        assert f'"id":{number}'.encode() in line
        assert (await client.ask("ping"))["result"] == {}


async def test_a_tool_called_through_another_is_on_record_under_its_own_name(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with connect(reeve, search=True) as client:
        await client.initialize()
        params = {"name": "call_tool", "arguments": {"name": "calculate", "arguments": {"expression": "1"}}}
        await client.ask("tools/call", params)
        recorded = [entry["tool"] for entry in await reeve.audit.recent(last_n=5, filters={})]

    assert recorded == ["calculate"]


@pytest.mark.parametrize("args", [{}, {"name": 7}, {"name": "calculate", "arguments": []}])
async def test_a_call_through_another_can_reach_nothing_else(world: World, args: dict[str, Any]) -> None:
    async with connect(world.reeve(), tools="calculate", search=True) as client:
        await client.initialize()

        assert (await client.ask("tools/call", {"name": "call_tool", "arguments": args}))["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bash", "find tools with `search_tools`"),
        ("search_tools", "find tools with `search_tools`"),
        ("calcluate", "did you mean calculate?"),
        ("maths__calculate", "did you mean calculate?"),
    ],
)
async def test_an_unknown_name_inside_a_call_is_a_tool_error_with_suggestions(
    world: World, name: str, said: str
) -> None:
    async with connect(world.reeve(), tools="calculate", search=True) as client:
        await client.initialize()
        answered = await client.ask("tools/call", {"name": "call_tool", "arguments": {"name": name}})

    assert answered["result"]["isError"] is True
    text = answered["result"]["content"][0]["text"]
    assert text == f"Error [E_TOOL_NOT_FOUND]: no tool is called {name!r}; {said}"


@pytest.mark.parametrize(
    "args", [{}, {"query": ""}, {"query": 7}, {"query": "a", "limit": "many"}, {"query": "a", "limit": True}]
)
async def test_an_invalid_search_is_answered_with_its_usage(world: World, args: dict[str, Any]) -> None:
    async with connect(world.reeve(), search=True) as client:
        await client.initialize()
        told = await client.call("search_tools", **args)

    assert told["isError"] is True


async def test_a_search_finds_only_what_may_be_used(world: World) -> None:
    async with connect(world.reeve(), tools="-shell", search=True) as client:
        await client.initialize()
        found = await client.call("search_tools", query="bash command file", limit=1_000_000)
        nothing = await client.call("search_tools", query="xyzzy")

    names = [each["name"] for each in found["structuredContent"]["tools"]]
    assert "bash" not in names
    assert "read_file" in names
    assert nothing["structuredContent"] == {"tools": []}
    assert "No tool matches" in nothing["content"][0]["text"]


async def test_without_search_its_tools_do_not_exist(world: World) -> None:
    async with connect(world.reeve()) as client:
        await client.initialize()

        for name in ("search_tools", "call_tool"):
            assert "Unknown tool" in (await client.ask("tools/call", {"name": name}))["error"]["message"]


async def test_a_viewer_can_call_what_reads_and_nothing_else(world: World) -> None:
    reeve = world.reeve()
    async with reeve:
        handlers, client = new_handlers(reeve), InMemoryClient()
        view, viewer = ToolView(reeve.tools, role=Role.VIEWER), Principal(user="eve", role=Role.VIEWER)
        client.connection = McpConnection(handlers, client, session="one", view=view, principal=viewer)
        await client.initialize()
        refused = await client.ask("tools/call", {"name": "bash", "arguments": {"command": "true"}})
        told = await client.call("calculate", expression="1")
        recorded = await reeve.audit.recent(last_n=1, filters={})
        await client.connection.finish(0)
        handlers.close()

    assert refused["error"]["message"] == "Unknown tool: bash"
    assert told["isError"] is False
    assert recorded[0]["user"] == "eve"


async def test_the_tool_that_waits_is_for_clients_that_cannot_be_asked(world: World) -> None:
    listed = {}
    clients: dict[str, dict[str, Any]] = {"asks": {"elicitation": {}}, "waits": {}}
    for name, capabilities in clients.items():
        async with connect(World(_fresh(world, name)).reeve()) as client:
            await client.initialize(**capabilities)
            tools = (await client.ask("tools/list"))["result"]["tools"]
            listed[name] = [tool["name"] for tool in tools if tool["name"] == "wait_for_approval"]

    assert listed == {"asks": [], "waits": ["wait_for_approval"]}


async def test_our_refusal_is_not_validated_against_an_upstream_output_schema(world: World) -> None:
    promised = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": promised}
    servers = {"far": {"command": sys.executable, "args": [LIGHT, json.dumps({"tools": [tool]})]}}
    async with connect(world.reeve(mcp_servers=servers)) as client:
        await client.initialize()
        told = await client.call("far__t")

    assert told["isError"] is True
    assert "structuredContent" not in told
    assert told["_meta"]["toolreeve_error"]["error"]["code"] == "E_APPROVAL_PENDING"


def _fresh(world: World, name: str) -> Path:
    place = world.workspace.parent / name
    place.mkdir()
    return place


async def test_a_list_waits_for_servers_that_are_still_connecting(world: World) -> None:
    servers = {"late": {"command": sys.executable, "args": [LIGHT, "{}"]}}
    settings = world.settings(mcp=Mcp(list_wait=60.0))
    reeve = world.reeve(settings=settings, mcp_servers=servers, await_servers=False)
    async with connect(reeve, tools="late") as client:
        capabilities = (await client.initialize(elicitation={}))["result"]["capabilities"]
        names = [each["name"] for each in (await client.ask("tools/list"))["result"]["tools"]]

    assert "resources" in capabilities
    assert "late__echo" in names


async def test_a_call_waits_for_a_server_that_is_still_connecting(world: World) -> None:
    servers = {"late": {"command": sys.executable, "args": [LIGHT, "{}"], "danger": "safe"}}
    async with connect(world.reeve(mcp_servers=servers, await_servers=False)) as client:
        await client.initialize()
        told = await client.ask("tools/call", {"name": "late__echo", "arguments": {"a": 1}})
        unknown = await client.ask("tools/call", {"name": "late__nothing", "arguments": {}})

    assert told["result"]["structuredContent"] == {"a": 1}
    assert unknown["error"]["message"] == "Unknown tool: late__nothing"


async def test_initialize_is_answered_before_the_runtime_is_up_and_calls_after(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    responder, client = StartupResponder(servers=True), InMemoryClient()
    client.connection = McpConnection(responder, client, session="one")
    initialized = await client.initialize(elicitation={})
    early = client.begin("tools/list")
    async with reeve:
        handlers, view = new_handlers(reeve), new_view(reeve, tools="calculate")
        client.connection.hand_over(handlers, view)
        responder.complete(handlers, view)
        listed = await client.answer_to(early)
        reeve.tools.unregister("picture")
        told = await client.next()
        later = await client.call("calculate", expression="2")
        await client.connection.finish(0)
        handlers.close()

    assert set(initialized["result"]["capabilities"]) == {"tools", "resources", "prompts", "completions", "logging"}
    assert [each["name"] for each in listed["result"]["tools"]] == ["calculate"]
    assert told["method"] == "notifications/tools/list_changed"
    assert later["structuredContent"]["result"] == 2


async def test_discover_gives_the_same_before_and_after_the_runtime_is_up(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    responder, client = StartupResponder(servers=False, instructions=search_instructions([])), InMemoryClient()
    client.connection = McpConnection(responder, client, session="one")
    early = await client.modern("server/discover")
    async with reeve:
        handlers, view = new_handlers(reeve), new_view(reeve, search=True)
        client.connection.hand_over(handlers, view)
        responder.complete(handlers, view)
        later = await client.modern("server/discover")
        await client.connection.finish(0)
        handlers.close()

    assert early["result"] == later["result"]
    assert early["result"]["supportedVersions"] == ["2026-07-28"]


async def test_early_requests_are_answered_with_the_reason_of_a_failed_start() -> None:
    responder, client = StartupResponder(servers=False, instructions=search_instructions([])), InMemoryClient()
    client.connection = McpConnection(responder, client, session="one")
    initialized = await client.initialize()
    early = client.begin("tools/call", {"name": "calculate"})
    responder.give_up("no disk")
    responder.give_up("once is enough")

    assert "search_tools" in initialized["result"]["instructions"]
    assert (await client.answer_to(early))["error"]["message"] == "the server could not start: no disk"


async def test_a_list_does_not_wait_for_a_slow_server_and_its_tools_are_announced_later(world: World) -> None:
    gate = world.workspace / "open"
    os.mkfifo(gate)
    begin = f"open({str(gate)!r}).read(); import runpy; runpy.run_path({LIGHT!r}, run_name='__main__')"
    servers = {"slow": {"command": sys.executable, "args": ["-c", begin, "{}"]}}
    settings = world.settings(mcp=Mcp(list_wait=0.0))
    async with connect(world.reeve(settings=settings, mcp_servers=servers, await_servers=False)) as client:
        await client.initialize(elicitation={})
        before = [each["name"] for each in (await client.ask("tools/list"))["result"]["tools"]]
        await asyncio.to_thread(gate.write_text, "go")
        await client.until("notifications/tools/list_changed")
        after = [each["name"] for each in (await client.ask("tools/list"))["result"]["tools"]]

    assert "read_file" in before
    assert ("slow__echo" in before, "slow__echo" in after) == (False, True)
