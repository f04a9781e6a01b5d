"""A client that does not read its responses is cut off."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from tests.serve.raw_http import post
from tests.serve.sample_server import HOST, MUCH, quick, served
from toolreeve.serve.protocol import HttpProtocol


class ShortDeadlines(HttpProtocol):
    reading_seconds = 0.3


@asynccontextmanager
async def asked(protocol: type[HttpProtocol], request: bytes) -> AsyncIterator[tuple[socket.socket, uvicorn.Server]]:
    """A client that has sent this, and has not read anything yet."""
    async with served(protocol=protocol) as (url, application, server):
        host, _, port = url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(request)
            client.setblocking(False)
            await application.answered.wait()
            yield client, server


async def all_gone(server: uvicorn.Server) -> None:
    async with asyncio.timeout(20):
        while server.server_state.connections or server.server_state.tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


CLOSING = post([HOST, (b"connection", b"close")], b"much", target=b"/usual")


@pytest.mark.parametrize("said", [quick(b"much"), quick(b"much") + CLOSING, CLOSING])
async def test_a_client_that_reads_nothing_is_cut_off(said: bytes) -> None:
    async with asked(ShortDeadlines, said) as (_, server):
        await all_gone(server)


async def test_a_client_that_reads_slowly_gets_everything() -> None:
    async with asked(ShortDeadlines, quick(b"much")) as (client, _):
        got, loop = 0, asyncio.get_running_loop()
        while got < MUCH:
            got += len(await asyncio.wait_for(loop.sock_recv(client, MUCH // 8), 10))
            await asyncio.sleep(ShortDeadlines.reading_seconds / 4)
