"""One owner's sessions take the place of their own oldest, never of those of others."""

from contextlib import AsyncExitStack

import httpx2

from tests.serve.mcp.house import House, serving
from tests.serve.mcp.test_http import ADA, BOB, HELLO, LEGACY, bearer, open_session
from tests.world import World

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


async def opened(house: House, token: dict[str, str]) -> httpx2.Response:
    return await house.client.post(house.url, json=INITIALIZE, headers=LEGACY | bearer(token))


async def is_open(house: House, session: str, token: dict[str, str]) -> bool:
    shown = LEGACY | bearer(token) | {"mcp-session-id": session}
    return (await house.client.post(house.url, json=PING, headers=shown)).status_code == 200


async def test_a_token_that_opens_session_after_session_ends_only_its_own(world: World) -> None:
    limits = {"max_sessions": 5, "max_sessions_per_token": 3}
    async with serving(world.reeve(), tokens=[ADA, BOB], limits=limits) as house:
        ours = [await open_session(house, bearer(ADA)) for _ in range(2)]
        theirs = [await open_session(house, bearer(BOB)) for _ in range(20)]
        again = [await opened(house, ADA) for _ in range(3)]

        assert [each.status_code for each in again] == [200] * 3
        assert [await is_open(house, each, BOB) for each in theirs] == [False] * 17 + [True] * 3
        assert not await is_open(house, ours[0], ADA)
        assert len(house.door.sessions) == 5


async def test_a_session_in_use_is_not_ended_and_the_new_one_is_refused(world: World) -> None:
    limits = {"max_sessions": 2, "max_sessions_per_token": 1}
    async with serving(world.reeve(), tokens=[ADA, BOB], limits=limits) as house, AsyncExitStack() as stack:
        session = await open_session(house, bearer(ADA))
        shown = LEGACY | bearer(ADA) | {"mcp-session-id": session}
        await stack.enter_async_context(house.client.stream("GET", house.url, headers=shown))
        refused = await opened(house, ADA)
        other = await opened(house, BOB)

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert "serve.max_sessions_per_token = 1" in refused.json()["error"]["message"]
    assert other.status_code == 200


async def test_where_others_hold_all_there_is_a_new_owner_is_refused_and_nobody_is_ended(world: World) -> None:
    limits = {"max_sessions": 2, "max_sessions_per_token": 2}
    async with serving(world.reeve(), tokens=[ADA, BOB], limits=limits) as house:
        sessions = [await open_session(house, bearer(ADA)) for _ in range(2)]
        refused = await opened(house, BOB)

        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert [await is_open(house, each, ADA) for each in sessions] == [True, True]


async def test_an_address_has_so_many_sessions_whoever_they_belong_to(world: World) -> None:
    async with serving(world.reeve(), tokens=[ADA, BOB], limits={"max_sessions_per_address": 2}) as house:
        for _ in range(2):
            await open_session(house, bearer(ADA))
        refused = await opened(house, BOB)

    assert (refused.status_code, "per_address = 2" in refused.text) == (429, True)


async def test_a_session_that_cannot_be_opened_takes_no_place(world: World) -> None:
    async with serving(world.reeve(), tokens=[ADA], limits={"max_sessions_per_token": 1}) as house:
        session = await open_session(house, bearer(ADA))
        await house.client.delete(house.url, headers=LEGACY | bearer(ADA) | {"mcp-session-id": session})
        for _ in range(3):
            await house.client.post(house.url, json=PING, headers=LEGACY | bearer(ADA))
            await house.client.post(house.url, content=b"{", headers=LEGACY | bearer(ADA))

        assert len(house.door.sessions) == 0
        assert (await opened(house, ADA)).status_code == 200
