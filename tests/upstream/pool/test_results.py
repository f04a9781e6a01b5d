"""What a server declares and answers passes unharmed, except for what it was told in secret."""

import json

import pytest

from tests.upstream.callers import ScriptedCaller
from tests.upstream.pool.status import of
from tests.upstream.server_tables import light, tool
from tests.world import World
from toolreeve import ErrorCode
from toolreeve.core.call import ToolCall
from toolreeve.core.mcp import Era

ANYTHING = {
    "content": [
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png", "x-unknown": [1, {"deep": None}]},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "é\u2028", "_meta": {"k": 1.5}}},
        {"type": "resource_link", "uri": "x://y", "name": "y"},
        {"type": "text", "text": "first"},
        {"type": "text", "text": "second"},
    ],
    "structuredContent": {"a": [1, 2.5, None, "ü"], "deep": {"er": {}}},
    "_meta": {"vendor/x": True},
    "notYetInvented": {"z": 0},
}


async def test_an_answer_passes_unharmed(world: World) -> None:
    server = light({"tools": [tool("any")], "answers": {"any": ANYTHING}}, danger="safe")

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        result = await reeve.call("s__any")

    assert result.to_mcp() == ANYTHING
    assert result.data == ANYTHING["structuredContent"]
    assert result.output == "first\nsecond"
    assert tuple(result.meta.labels) == ("untrusted", "private")


async def test_a_definition_passes_unharmed(world: World) -> None:
    declared = tool(
        "t",
        title="T",
        inputSchema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
            "properties": {"at": {"$ref": "#/$defs/p"}},
        },
        outputSchema={"type": "object", "properties": {"y": {"type": "string"}}},
        icons=[{"src": "data:"}],
        _meta={"a": [1]},
    )

    async with world.reeve(mcp_servers={"s": light({"tools": [declared]}, danger="safe")}) as reeve:
        spec = reeve.tools.resolve("s__t").spec
        refused = await reeve.call("s__t", at={"x": "far"})

    assert spec.declared == declared
    assert (spec.input, spec.output) == (declared["inputSchema"], declared["outputSchema"])
    assert refused.error is not None
    assert refused.error.code is ErrorCode.INVALID_PARAMS


async def test_what_a_tool_reports_as_failed_failed(world: World) -> None:
    failed = {"content": [{"type": "text", "text": "no such thing"}], "isError": True, "_meta": {"kept": 1}}
    server = light({"tools": [tool("t")], "answers": {"t": failed}}, danger="safe")

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        result = await reeve.call("s__t")

    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.TOOL_EXEC, "no such thing")
    assert result.to_mcp() == failed


async def test_an_error_of_the_protocol_is_handed_on_as_it_came(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light({"tools": [tool("unknown")]}, danger="safe")}) as reeve:
        result = await reeve.call("s__unknown")

    assert result.error is not None
    assert result.error.code is ErrorCode.UPSTREAM
    told = {"code": -32601, "message": "no tools/call", "data": {"kept": [1]}}
    assert result.error.detail == {"jsonrpc": told}
    assert not result.error.retryable


async def test_a_secret_that_a_server_was_given_does_not_come_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASS", "open-sesame-1234")
    server = light(danger="safe", env={"PASS": "${secret:PASS}"})

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        assert reeve.problems == ()
        result = await reeve.call("s__environment")

    assert "open-sesame-1234" not in json.dumps(result.to_dict()) + json.dumps(result.to_mcp())
    assert "[redacted]" in result.to_text()
    assert b"open-sesame-1234" not in world.database_bytes()


async def test_a_caller_of_the_modern_era_is_served_by_a_server_that_knows_only_the_legacy_one(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light(danger="safe")}) as reeve:
        calls = [ToolCall(tool="s__pid", args={}, peer=ScriptedCaller(era=Era.MODERN)) for _ in range(2)]
        first, second = [await reeve.run(call) for call in calls]
        alone = await reeve.call("s__pid")

    assert first.output == second.output == alone.output


async def test_a_server_that_knows_only_the_modern_era_serves_everybody(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light({"modern": True}, danger="safe")}) as reeve:
        peers = [None, ScriptedCaller(), ScriptedCaller(era=Era.MODERN)]
        calls = [ToolCall(tool="s__echo", args={"a": 1}, peer=peer) for peer in peers]
        results = [await reeve.run(call) for call in calls]

        assert of(reeve, "s").era == Era.MODERN
        assert [result.data for result in results] == [{"a": 1}] * 3
