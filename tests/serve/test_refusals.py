"""After a refusal the client can read the reason, and its further bytes are discarded."""

import asyncio
import socket

import pytest
from starlette.responses import PlainTextResponse

from tests.serve.mcp.http_server import serving
from tests.serve.sample_server import served
from tests.world import World
from toolreeve.serve.parser import MAX_BYTES
from toolreeve.serve.protocol import MAX_LINGERING, HttpProtocol

TOKEN = {"token": "ada-comes-in-with-this", "user": "ada", "role": "operator"}
BEGUN = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n"
BODY = b"content-length: 104857600\r\n\r\n"
GIVEN = b"authorization: Bearer ada-comes-in-with-this\r\n"
REFUSED = {
    b"401": BEGUN + BODY,
    b"403": BEGUN + b"origin: https://evil.example\r\n" + BODY,
    b"421": BEGUN.replace(b"127.0.0.1", b"evil.example") + BODY,
    b"404": (BEGUN + GIVEN + BODY).replace(b"/mcp", b"/elsewhere"),
    b"413": BEGUN + GIVEN + BODY,
    b"400": b"GARBAGE\r\n\r\n",
    b"414": b"GET /" + b"a" * (MAX_BYTES + 8192),
    b"431": BEGUN + b"a:\r\n" * 300,
}
MOST_IN_FLIGHT = 16 * 1024 * 1024
"""What the buffers of both sockets may hold besides what is read and dropped."""


class ShortDeadlines(HttpProtocol):
    head_seconds = body_seconds = linger_seconds = 0.3


def flood(client: socket.socket) -> int:
    """How much could be sent until the other side broke off, or took no more."""
    sent = 0
    try:
        while sent < 100 * 1024 * 1024:
            sent += client.send(b"x" * 65536)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize("status", REFUSED)
async def test_a_refused_client_reads_the_reason_and_is_not_read_further(world: World, status: bytes) -> None:
    async with serving(world.reeve(), tokens=[TOKEN]) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REFUSED[status])
        said = await asyncio.wait_for(reader.read(), 10)
        client = writer.get_extra_info("socket").dup()
        client.settimeout(10)
        sent = await asyncio.to_thread(flood, client)
        client.close()
        writer.close()

    assert said.startswith(b"HTTP/1.1 " + status)
    assert b"connection: close" in said
    assert sent < MAX_LINGERING + MOST_IN_FLIGHT


async def test_a_client_that_sends_slightly_too_much_and_reads_late_still_reads_the_reason(world: World) -> None:
    async with serving(world.reeve(), tokens=[TOKEN]) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(BEGUN + GIVEN + b"content-length: 6000000\r\n\r\n" + b"x" * 6_000_000)
        await writer.drain()
        said = await asyncio.wait_for(reader.read(), 10)
        writer.close()

    assert said.startswith(b"HTTP/1.1 413")


async def test_a_client_that_stays_after_a_refusal_is_disconnected() -> None:
    async with served(ShortDeadlines, application=PlainTextResponse("done")) as (url, _, server):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(BEGUN)
        said = await asyncio.wait_for(reader.read(), 10)
        async with asyncio.timeout(10):
            while server.server_state.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        writer.close()

    assert said.startswith(b"HTTP/1.1 408")
