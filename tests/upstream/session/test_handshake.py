"""How a session begins: which era and version it settles on, and what becomes of a server that will not."""

import asyncio
from typing import Any

import pytest

from tests.upstream.scripted import INFO, Scripted, discovered, initialized
from toolreeve.core.mcp import Era
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import ServerUnavailable


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_a_handshake_settles_on_a_version_that_the_server_speaks(version: str) -> None:
    line = Scripted()
    session = UpstreamSession(line, client_info=INFO, capabilities={"roots": {}})
    opening = asyncio.ensure_future(session.open(Era.LEGACY, 5))

    asked = await line.answer(initialized(version))
    await opening

    assert asked["params"] == {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": INFO}
    assert await line.next() == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (session.alive, session.era, session.greeting.version) == (True, Era.LEGACY, version)


async def test_a_version_that_nobody_knows_is_refused_and_both_sides_are_named() -> None:
    line = Scripted()
    opening = asyncio.ensure_future(UpstreamSession(line, client_info=INFO).open(Era.LEGACY, 5))
    await line.answer(initialized("1999-01-01"))

    with pytest.raises(ServerUnavailable, match=r"1999-01-01.*2025-11-25"):
        await opening
    assert line.closed


@pytest.mark.parametrize("answer", [{"supportedVersions": ["2025-11-25"]}, {"supportedVersions": 7}, {}])
async def test_a_server_that_does_not_name_the_newer_version_is_greeted_in_the_older_way(answer: Any) -> None:
    line = Scripted()
    session = UpstreamSession(line, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await line.answer(answer)
    second = await line.answer(initialized())
    await opening

    assert second["method"] == "initialize"
    assert "_meta" not in second["params"]
    assert session.era is Era.LEGACY


async def test_a_server_that_does_not_know_the_question_is_greeted_in_the_older_way() -> None:
    line = Scripted()
    session = UpstreamSession(line, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await line.refuse(-32601)
    await line.answer(initialized())
    await opening

    assert session.era is Era.LEGACY


async def test_a_server_that_had_begun_in_the_newer_way_is_asked_once_more() -> None:
    line = Scripted()
    session = UpstreamSession(line, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await line.refuse(-32603)
    await line.refuse(-32022, "unsupported", {"supported": ["2026-07-28"]})
    await line.answer(discovered())
    await opening

    assert session.era is Era.MODERN


async def test_a_server_that_never_answers_counts_as_away_with_its_last_words() -> None:
    line = Scripted()
    line.words = "waiting for the database"

    with pytest.raises(
        ServerUnavailable, match=r"did not answer within 0.05 s; its last words: waiting for the database"
    ):
        await UpstreamSession(line, client_info=INFO).open(Era.LEGACY, 0.05)
    assert line.closed


async def test_a_refusal_to_begin_cannot_steer_the_terminal() -> None:
    line = Scripted()
    opening = asyncio.ensure_future(UpstreamSession(line, client_info=INFO).open(Era.LEGACY, 5))
    await line.refuse(-32000, "go\x1b[2Jaway\u202e")

    with pytest.raises(ServerUnavailable) as refused:
        await opening
    assert str(refused.value) == "the server refused to begin: go‹U+001B›[2Jaway‹U+202E›"


async def test_how_a_conversation_begins_is_never_taken_back() -> None:
    line = Scripted()
    session = UpstreamSession(line, client_info=INFO)

    with pytest.raises(ServerUnavailable):
        await session.open(Era.MODERN, 0.05)

    assert [message["method"] for message, _ in _drained(line)] == ["server/discover"]


def _drained(line: Scripted) -> list[Any]:
    return [line.sent.get_nowait() for _ in range(line.sent.qsize())]
