"""The modern era, and its separation from the legacy era."""

from typing import Any

import pytest

from tests.serve.mcp.connection.tools import TOOLS
from tests.serve.mcp.in_memory import connect
from tests.serve.mcp.stdio_client import envelope
from tests.world import World
from toolreeve.serve.mcp.protocol import SERVER_KEY, VERSION_KEY


async def test_every_modern_result_carries_its_type_and_the_server_info(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        found = (await client.modern("server/discover"))["result"]
        listed = (await client.modern("tools/list"))["result"]
        said = (await client.modern("tools/call", {"name": "echo", "arguments": {"text": "hi"}}))["result"]

    for result in (found, listed, said):
        assert result["resultType"] == "complete"
        assert result["_meta"][SERVER_KEY]["name"] == "toolreeve"
    assert found["supportedVersions"] == ["2026-07-28"]
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
    assert "ttlMs" not in said


async def test_initialize_on_a_modern_connection_is_answered_with_the_supported_versions(world: World) -> None:
    async with connect(world.reeve()) as client:
        await client.modern("server/discover")

        assert (await client.initialize())["error"] == {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"},
        }


async def test_a_modern_request_after_a_handshake_is_refused(world: World) -> None:
    async with connect(world.reeve()) as client:
        await client.initialize()

        assert (await client.modern("tools/list"))["error"]["code"] == -32600


async def test_a_modern_probe_that_failed_leaves_the_handshake_open(world: World) -> None:
    async with connect(world.reeve()) as client:
        refused = await client.modern("server/discover", meta={VERSION_KEY: "2099-01-01"})
        initialized = await client.initialize()

    assert refused["error"]["code"] == -32022
    assert refused["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
    assert "result" in initialized


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({VERSION_KEY: "2026-07-28"}, -32602),
        ({VERSION_KEY: 7, **envelope()} | {VERSION_KEY: 7}, -32602),
        (envelope() | {"io.modelcontextprotocol/clientCapabilities": []}, -32602),
        (envelope() | {"io.modelcontextprotocol/clientInfo": "me"}, -32602),
        (envelope() | {"io.modelcontextprotocol/logLevel": "loud"}, -32602),
        (envelope() | {VERSION_KEY: "2025-11-25"}, -32022),
    ],
)
async def test_a_modern_request_must_identify_its_client(world: World, meta: dict[str, Any], code: int) -> None:
    async with connect(world.reeve()) as client:
        assert (await client.ask("tools/list", {"_meta": meta}))["error"]["code"] == code


async def test_a_modern_connection_takes_no_request_without_its_envelope(world: World) -> None:
    async with connect(world.reeve()) as client:
        await client.modern("server/discover")

        assert (await client.ask("tools/list"))["error"]["code"] == -32602
