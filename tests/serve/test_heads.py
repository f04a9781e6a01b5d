"""Whoever has not said who they are can hold up nothing and fill nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from toolreeve.serve.app import bind
from toolreeve.serve.quick import QuickProtocol

BEGUN = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


class Hasty(QuickProtocol):
    seconds = 0.3


@asynccontextmanager
async def connected(
    protocol: type[QuickProtocol] = QuickProtocol,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = uvicorn.Config(PlainTextResponse("done"), http=protocol, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as place:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([place]))
            reader, writer = await asyncio.open_connection(*place.getsockname())
            try:
                yield reader, writer
            finally:
                writer.close()
                server.should_exit = True


async def flood(writer: asyncio.StreamWriter) -> None:
    for number in range(10_000):
        writer.write(b"X-%d: %s\r\n" % (number, b"a" * 10_000))
        await writer.drain()


async def test_a_head_without_an_end_is_cut_off_before_it_fills_the_memory() -> None:
    async with connected() as (_, writer):
        writer.write(BEGUN)

        with pytest.raises(ConnectionError):
            await flood(writer)


@pytest.mark.parametrize("said", [b"", BEGUN])
async def test_a_head_that_does_not_come_is_not_waited_for(said: bytes) -> None:
    async with connected(Hasty) as (reader, writer):
        writer.write(said)

        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_head_that_stops_after_an_answered_request_is_not_waited_for_either() -> None:
    async with connected(Hasty) as (reader, writer):
        writer.write(BEGUN + b"\r\n")
        await asyncio.wait_for(reader.readuntil(b"done"), 10)
        writer.write(BEGUN)

        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_request_in_many_pieces_is_answered() -> None:
    async with connected() as (reader, writer):
        for byte in BEGUN + b"\r\n":
            writer.write(bytes([byte]))
            await writer.drain()

        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 200")


async def test_a_body_that_comes_after_its_answer_holds_up_no_further_request() -> None:
    async with connected(Hasty) as (reader, writer):
        writer.write(BEGUN + b"Content-Length: 4\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b"done"), 10)
        for byte in b"body":
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write(BEGUN + b"\r\n")

        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 200")
