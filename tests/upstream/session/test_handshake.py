"""How a session begins: which era and version it settles on, and what becomes of a server that will not."""

import asyncio
from typing import Any

import pytest

from tests.upstream.scripted_transport import INFO, ScriptedTransport, discovered, initialized
from toolreeve.core.mcp import Era
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import ServerUnavailable


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_a_handshake_settles_on_a_version_that_the_server_speaks(version: str) -> None:
    transport = ScriptedTransport()
    session = UpstreamSession(transport, client_info=INFO, capabilities={"roots": {}})
    opening = asyncio.ensure_future(session.open(Era.LEGACY, 5))

    asked = await transport.answer(initialized(version))
    await opening

    assert asked["params"] == {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": INFO}
    assert await transport.next() == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (session.alive, session.era, session.handshake.version) == (True, Era.LEGACY, version)


async def test_an_unknown_version_is_refused_and_both_sides_are_named() -> None:
    transport = ScriptedTransport()
    opening = asyncio.ensure_future(UpstreamSession(transport, client_info=INFO).open(Era.LEGACY, 5))
    await transport.answer(initialized("1999-01-01"))

    with pytest.raises(ServerUnavailable, match=r"1999-01-01.*2025-11-25"):
        await opening
    assert transport.closed


@pytest.mark.parametrize("answer", [{"supportedVersions": ["2025-11-25"]}, {"supportedVersions": 7}, {}])
async def test_a_server_without_the_modern_version_gets_the_legacy_handshake(answer: Any) -> None:
    transport = ScriptedTransport()
    session = UpstreamSession(transport, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await transport.answer(answer)
    second = await transport.answer(initialized())
    await opening

    assert second["method"] == "initialize"
    assert "_meta" not in second["params"]
    assert session.era is Era.LEGACY


async def test_a_server_that_does_not_know_discover_gets_the_legacy_handshake() -> None:
    transport = ScriptedTransport()
    session = UpstreamSession(transport, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await transport.refuse(-32601)
    await transport.answer(initialized())
    await opening

    assert session.era is Era.LEGACY


async def test_a_slow_modern_server_is_discovered_again() -> None:
    transport = ScriptedTransport()
    session = UpstreamSession(transport, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await transport.refuse(-32603)
    await transport.refuse(-32022, "unsupported", {"supported": ["2026-07-28"]})
    await transport.answer(discovered())
    await opening

    assert session.era is Era.MODERN


async def test_a_server_that_never_responds_is_unavailable_with_its_last_output() -> None:
    transport = ScriptedTransport()
    transport.words = "waiting for the database"

    with pytest.raises(
        ServerUnavailable, match=r"did not respond within 0.05 s; its last output: waiting for the database"
    ):
        await UpstreamSession(transport, client_info=INFO).open(Era.LEGACY, 0.05)
    assert transport.closed


async def test_a_refused_handshake_cannot_steer_the_terminal() -> None:
    transport = ScriptedTransport()
    opening = asyncio.ensure_future(UpstreamSession(transport, client_info=INFO).open(Era.LEGACY, 5))
    await transport.refuse(-32000, "go\x1b[2Jaway\u202e")

    with pytest.raises(ServerUnavailable) as refused:
        await opening
    assert str(refused.value) == "the server refused the handshake: go‹U+001B›[2Jaway‹U+202E›"


async def test_the_handshake_is_never_cancelled() -> None:
    transport = ScriptedTransport()
    session = UpstreamSession(transport, client_info=INFO)

    with pytest.raises(ServerUnavailable):
        await session.open(Era.MODERN, 0.05)

    assert [message["method"] for message, _ in _drained(transport)] == ["server/discover"]


def _drained(transport: ScriptedTransport) -> list[Any]:
    return [transport.sent.get_nowait() for _ in range(transport.sent.qsize())]
