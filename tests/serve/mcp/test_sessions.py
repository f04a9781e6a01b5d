"""Sessions replace their owner's oldest idle one, and go on at another gateway with the same key."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2

from tests.serve.mcp.http_server import HttpTestServer, serving
from tests.serve.mcp.test_http import ADA, BOB, HELLO, LEGACY, bearer, open_session
from tests.world import World
from toolreeve.serve.mcp.request_state import Seal

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


async def opened(server: HttpTestServer, token: dict[str, str]) -> httpx2.Response:
    return await server.client.post(server.url, json=INITIALIZE, headers=LEGACY | bearer(token))


async def is_open(server: HttpTestServer, session: str, token: dict[str, str], number: int = 2) -> bool:
    shown = LEGACY | bearer(token) | {"mcp-session-id": session}
    return (await server.client.post(server.url, json=PING | {"id": number}, headers=shown)).status_code == 200


async def test_a_token_that_opens_session_after_session_ends_only_its_own(world: World) -> None:
    limits = {"max_sessions": 5, "max_sessions_per_token": 3}
    async with serving(world.reeve(), tokens=[ADA, BOB], limits=limits) as server:
        ours = [await open_session(server, bearer(ADA)) for _ in range(2)]
        theirs = [await open_session(server, bearer(BOB)) for _ in range(20)]
        again = [await opened(server, ADA) for _ in range(3)]

        assert [each.status_code for each in again] == [200] * 3
        assert [await is_open(server, each, BOB) for each in theirs] == [False] * 17 + [True] * 3
        assert not await is_open(server, ours[0], ADA)
        assert len(server.door.sessions) == 5


async def test_a_session_in_use_is_not_ended_and_the_new_one_is_refused(world: World) -> None:
    limits = {"max_sessions": 2, "max_sessions_per_token": 1}
    async with serving(world.reeve(), tokens=[ADA, BOB], limits=limits) as server, AsyncExitStack() as stack:
        session = await open_session(server, bearer(ADA))
        shown = LEGACY | bearer(ADA) | {"mcp-session-id": session}
        await stack.enter_async_context(server.client.stream("GET", server.url, headers=shown))
        refused = await opened(server, ADA)
        other = await opened(server, BOB)

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert "serve.max_sessions_per_token = 1" in refused.json()["error"]["message"]
    assert other.status_code == 200


async def test_where_others_hold_all_there_is_a_new_owner_is_refused_and_nobody_is_ended(world: World) -> None:
    limits = {"max_sessions": 2, "max_sessions_per_token": 2}
    async with serving(world.reeve(), tokens=[ADA, BOB], limits=limits) as server:
        sessions = [await open_session(server, bearer(ADA)) for _ in range(2)]
        refused = await opened(server, BOB)

        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert [await is_open(server, each, ADA) for each in sessions] == [True, True]


async def test_sessions_are_limited_per_address_across_owners(world: World) -> None:
    async with serving(world.reeve(), tokens=[ADA, BOB], limits={"max_sessions_per_address": 2}) as server:
        for _ in range(2):
            await open_session(server, bearer(ADA))
        refused = await opened(server, BOB)

    assert (refused.status_code, "per_address = 2" in refused.text) == (429, True)


async def test_a_session_that_cannot_be_opened_takes_no_place(world: World) -> None:
    async with serving(world.reeve(), tokens=[ADA], limits={"max_sessions_per_token": 1}) as server:
        session = await open_session(server, bearer(ADA))
        await server.client.delete(server.url, headers=LEGACY | bearer(ADA) | {"mcp-session-id": session})
        for _ in range(3):
            await server.client.post(server.url, json=PING, headers=LEGACY | bearer(ADA))
            await server.client.post(server.url, content=b"{", headers=LEGACY | bearer(ADA))

        assert len(server.door.sessions) == 0
        assert (await opened(server, ADA)).status_code == 200


READ = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "a"}}}


@asynccontextmanager
async def two_gateways(world: World, **limits: Any) -> AsyncIterator[tuple[HttpTestServer, HttpTestServer]]:
    """With one record, as gateways with one database have it, and one key."""
    seal = Seal([b"k" * 32], now=time.time)
    async with (
        serving(world.reeve(), tokens=[ADA, BOB], limits=limits, seal=seal) as one,
        serving(world.reeve(), tokens=[ADA, BOB], limits=limits, seal=seal) as other,
    ):
        yield one, other


async def test_a_session_goes_on_at_another_gateway_as_the_same_session(world: World) -> None:
    (world.workspace / "a").write_text("found")
    async with two_gateways(world) as gateways:
        session = await open_session(gateways[0], bearer(ADA))
        shown = LEGACY | bearer(ADA) | {"mcp-session-id": session}
        answers = [await each.client.post(each.url, json=READ, headers=shown) for each in (*gateways, *gateways)]
        records = await gateways[0].reeve.audit.recent(last_n=4, filters={})

    assert [("found" in each.text, each.status_code) for each in answers] == [(True, 200)] * 4
    assert len({record["session"] for record in records}) == 1


async def test_requests_that_come_at_once_open_a_session_once(world: World) -> None:
    async with two_gateways(world, max_sessions_per_token=1) as (one, other):
        session = await open_session(one, bearer(ADA))
        found = await asyncio.gather(*(is_open(other, session, ADA, number) for number in range(8)))

        assert found == [True] * 8
        assert len(other.door.sessions) == 1


async def test_a_session_goes_on_only_for_its_owner_and_unaltered(world: World) -> None:
    async with two_gateways(world) as (one, other):
        session = await open_session(one, bearer(ADA))
        altered = ("A" if session[40] != "A" else "B").join((session[:40], session[41:]))

        assert not await is_open(other, session, BOB)
        assert not await is_open(other, altered, ADA)
        assert not await is_open(other, "0" * 32, ADA)
        assert await is_open(other, session, ADA)


async def test_a_session_that_its_client_ended_stays_ended(world: World) -> None:
    async with two_gateways(world) as (one, other):
        session = await open_session(one, bearer(ADA))
        assert await is_open(other, session, ADA)
        await other.client.delete(other.url, headers=LEGACY | bearer(ADA) | {"mcp-session-id": session})

        assert not await is_open(other, session, ADA)


async def test_a_session_that_went_on_counts_at_its_new_gateway(world: World) -> None:
    async with two_gateways(world, max_sessions_per_token=2) as (one, other):
        first, second, third = [await open_session(one, bearer(ADA)) for _ in range(3)]
        assert [await is_open(other, each, ADA) for each in (first, second, third)] == [True] * 3

        assert len(other.door.sessions) == 2


async def test_a_handshake_that_is_too_long_for_an_id_opens_a_session_here(world: World) -> None:
    name = {"name": "n" * 8_000, "version": "1"}
    opening = INITIALIZE | {"params": HELLO | {"clientInfo": name}}
    async with two_gateways(world) as (one, other):
        answer = await one.client.post(one.url, json=opening, headers=LEGACY | bearer(ADA))
        session = answer.headers["mcp-session-id"]

        assert await is_open(one, session, ADA)
        assert not await is_open(other, session, ADA)
