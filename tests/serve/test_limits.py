"""A token, user or address uses up its own quota and nothing of the others'."""

import asyncio
import socket
from contextlib import AsyncExitStack

import pytest

from tests.serve.mcp.http_server import HttpTestServer, serving
from tests.serve.raw_http import Connection, connection, post
from tests.serve.sample_server import HOST, MUCH, quick, served
from tests.world import World
from toolreeve.config.sections.serve import Serve
from toolreeve.serve.limits import describe, peer_address, read_limits

ADA = {"token": "ada-comes-in-with-this", "user": "ada", "role": "operator"}
BOB = {"token": "bob-comes-in-with-this", "user": "bob", "role": "viewer"}


def hello(token: dict[str, str]) -> bytes:
    shown = b"Bearer " + token["token"].encode()
    return post([(b"host", b"127.0.0.1"), (b"authorization", shown)], b"", target=b"/elsewhere")


async def come(stack: AsyncExitStack, server: HttpTestServer, token: dict[str, str]) -> tuple[Connection, int, str]:
    line = await stack.enter_async_context(connection(server.url))
    await line.send(hello(token))
    answer = await line.answer()
    return line, answer.status, answer.body.decode()


async def test_an_address_has_so_many_connections_and_room_comes_back() -> None:
    async with served(max_connections_per_address=2) as (url, _, _), connection(url) as one:
        await one.send(quick(b"one"))
        await one.answer()
        async with connection(url) as two:
            await two.send(quick(b"two"))
            await two.answer()
            async with connection(url) as three:
                await three.send(quick(b"three"))
                refused = await three.answer()
                assert await three.rest() == b""
        async with asyncio.timeout(10):
            while (answer := await _asked(url)).status != 200:
                pass

    assert (refused.status, refused.headers["retry-after"], refused.headers["connection"]) == (429, "5", "close")
    assert b"serve.max_connections_per_address = 2" in refused.body
    assert answer.body == b"quick ? again"


async def _asked(url: str):  # type: ignore[no-untyped-def]
    async with connection(url) as line:
        await line.send(quick(b"again"))
        return await line.answer()


async def test_all_together_have_so_many_connections() -> None:
    async with served(max_connections=1) as (url, _, _), connection(url) as one, connection(url) as two:
        await one.send(quick(b"one"))
        await one.answer()
        await two.send(quick(b"two"))

        refused = await two.answer()

    assert (refused.status, b"serve.max_connections = 1" in refused.body) == (503, True)


async def test_a_silent_connection_beyond_the_limit_is_refused_with_the_reason() -> None:
    async with served(max_connections=1) as (url, _, _), connection(url), connection(url) as two:
        assert (await two.answer()).status == 503


async def test_a_token_has_so_many_connections_and_others_have_theirs(world: World) -> None:
    limits = {"max_connections_per_token": 2}
    async with serving(world.reeve(), tokens=[ADA, BOB], limits=limits) as server, AsyncExitStack() as stack:
        told = [await come(stack, server, token) for token in (ADA, ADA, ADA, BOB, BOB)]
        await told[0][0].send(hello(BOB))
        other = await told[0][0].answer()

    assert [status for _, status, _ in told] == [404, 404, 429, 404, 404]
    assert "serve.max_connections_per_token = 2" in told[2][2]
    assert other.status == 429


async def test_unread_responses_are_bounded_by_the_quota_and_the_newest_is_answered() -> None:
    async with served(max_buffered_bytes_per_address=3 * MUCH * 4) as (url, _, server):
        host, _, port = url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port))) as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lines = [socket.create_connection((host, int(port))) for _ in range(4)]
            for each in lines:
                each.sendall(quick(b"much"))
            async with connection(url) as reading:
                await reading.send(quick(b"much"))
                answer = await reading.answer()
            async with asyncio.timeout(20):
                while len(server.server_state.connections) > 3:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            for each in lines:
                each.close()

    assert len(answer.body) > MUCH


async def test_bodies_that_do_not_end_hold_no_more_than_their_share() -> None:
    body = b"x" * 900_000
    begun = b"POST /usual HTTP/1.1\r\nhost: here\r\ncontent-length: 1000000\r\n\r\n" + body
    async with served(max_buffered_bytes_per_address=2_000_000) as (url, _, _), AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(connection(url)) for _ in range(3)]
        for line in lines[:2]:
            await line.send(begun)
        await asyncio.sleep(0)
        await lines[2].send(begun)
        refused = await lines[2].answer()
        await lines[0].send(b"x" * 100_000)
        answer = await lines[0].answer()

    assert (refused.status, b"serve.max_buffered_bytes_per_address" in refused.body) == (429, True)
    assert (answer.status, len(answer.body)) == (200, len(b"usual ") + 1_000_000)


async def test_what_was_read_counts_no_more() -> None:
    async with served(max_buffered_bytes_per_address=12 * MUCH) as (url, _, _), connection(url) as line:
        for _ in range(8):
            await line.send(quick(b"much") + post([HOST], b"much", target=b"/usual"))
            assert [(await line.answer()).status, (await line.answer()).status] == [200, 200]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.9.10", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_what_one_client_can_take_at_will_counts_as_one_address(host: str, address: str) -> None:
    assert peer_address(host) == address


def test_limits_are_described_as_they_apply() -> None:
    limits = read_limits(Serve(max_connections=10**9, max_sessions=7))

    assert "1,000,000,000" not in next(iter(describe(limits)))
    assert list(describe(limits))[1] == "7 sessions"
    assert list(describe(limits, shares=True))[1].startswith("7 sessions (100 per token")
    assert list(describe(limits))[2] == "256 MB buffered"
    assert list(describe(read_limits(Serve(max_buffered_bytes=1000))))[2] == "1,000 bytes buffered"
