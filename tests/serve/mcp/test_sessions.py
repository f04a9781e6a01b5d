"""A new session replaces its owner's oldest idle one, never one of another owner."""

from contextlib import AsyncExitStack

import httpx2

from tests.serve.mcp.http_server import HttpTestServer, serving
from tests.serve.mcp.test_http import ADA, BOB, HELLO, LEGACY, bearer, open_session
from tests.world import World

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


async def opened(server: HttpTestServer, token: dict[str, str]) -> httpx2.Response:
    return await server.client.post(server.url, json=INITIALIZE, headers=LEGACY | bearer(token))


async def is_open(server: HttpTestServer, session: str, token: dict[str, str]) -> bool:
    shown = LEGACY | bearer(token) | {"mcp-session-id": session}
    return (await server.client.post(server.url, json=PING, headers=shown)).status_code == 200


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
