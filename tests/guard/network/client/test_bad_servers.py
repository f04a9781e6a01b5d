"""Servers that send without end, too slowly, nonsense or nothing."""

import asyncio
import gzip

import pytest

from tests.guard.network.client.client import failure, http, send
from tests.network import Answer, listening, web_server
from toolreeve.core.errors import ErrorCode


async def test_a_body_beyond_the_cap_is_cut_while_it_streams() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    async with listening(endless) as port, http(f"127.0.0.1:{port}") as client:
        reply = await send(client, f"http://127.0.0.1:{port}/")

        assert (len(reply.body), reply.truncated) == (100_000, True)


async def test_a_compressed_bomb_is_cut_after_unpacking() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    async with (
        web_server(lambda _: Answer(body=bomb, headers={"content-encoding": "gzip"})) as web,
        http(f"127.0.0.1:{web.port}") as client,
    ):
        reply = await send(client, web.url())

        assert (len(reply.body), reply.truncated) == (100_000, True)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nx"])
async def test_a_server_that_dawdles_meets_the_deadline(said: bytes) -> None:
    async def dawdle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await reader.read()
        await asyncio.Event().wait()

    async with listening(dawdle) as port, http(f"127.0.0.1:{port}") as client:
        assert (await failure(client, f"http://127.0.0.1:{port}/", timeout=0.2)).code is ErrorCode.HTTP_TIMEOUT


async def test_a_slow_drip_meets_the_deadline_although_each_byte_comes_in_time() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with listening(drip) as port, http(f"127.0.0.1:{port}") as client:
        assert (await failure(client, f"http://127.0.0.1:{port}/", timeout=0.2)).code is ErrorCode.HTTP_TIMEOUT


@pytest.mark.parametrize(
    "said",
    [
        b"nonsense\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope",
    ],
)
async def test_a_server_that_speaks_nonsense_is_an_http_error(said: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()

    async with listening(speak) as port, http(f"127.0.0.1:{port}") as client:
        assert (await failure(client, f"http://127.0.0.1:{port}/")).code is ErrorCode.HTTP_ERROR


async def test_a_closed_port_is_an_http_error() -> None:
    async with web_server() as web:
        url = web.url()
    async with http(f"127.0.0.1:{web.port}") as client:
        assert (await failure(client, url)).code is ErrorCode.HTTP_ERROR


async def test_cancelling_a_request_gives_its_connection_up() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        gone.set()

    async with listening(hang) as port, http(f"127.0.0.1:{port}") as client:
        task = asyncio.create_task(send(client, f"http://127.0.0.1:{port}/"))
        await asyncio.wait_for(arrived.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)
