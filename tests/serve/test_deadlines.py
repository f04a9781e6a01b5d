"""An unauthenticated client can neither hold a connection open nor fill memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.responses import PlainTextResponse

from tests.serve.raw_http import connection
from tests.serve.sample_server import DOZE, quick, served
from toolreeve.serve.parser import MAX_BYTES, MAX_HEADERS
from toolreeve.serve.protocol import HttpProtocol

BEGUN = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


class ShortDeadlines(HttpProtocol):
    head_seconds = body_seconds = 0.3


@asynccontextmanager
async def connected(
    protocol: type[HttpProtocol] = HttpProtocol,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with served(protocol, application=PlainTextResponse("done")) as (url, _, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        try:
            yield reader, writer
        finally:
            writer.close()


async def flood(writer: asyncio.StreamWriter, line: bytes) -> None:
    for _ in range(10_000):
        writer.write(line)
        await writer.drain()
        await asyncio.sleep(0)


@pytest.mark.parametrize("begun", [BEGUN, BEGUN + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"], ids=["head", "trailer"])
@pytest.mark.parametrize("line", [b"X: %s\r\n" % (b"a" * 10_000), b"a" * 10_000, b"a:\r\n" * 2500])
async def test_what_a_request_says_of_itself_is_cut_off_before_it_fills_the_memory(begun: bytes, line: bytes) -> None:
    async with connected() as (_, writer):
        writer.write(begun)

        with pytest.raises(ConnectionError):
            await flood(writer, line)


async def test_a_head_of_very_many_lines_is_refused_even_if_it_comes_at_once() -> None:
    async with connected() as (reader, writer):
        writer.write(BEGUN + b"a:\r\n" * MAX_HEADERS + b"\r\n")

        said = await asyncio.wait_for(reader.read(), 10)

    assert said.startswith(b"HTTP/1.1 431")
    assert b"more than 256 headers" in said


@pytest.mark.parametrize("said", [b"", BEGUN, b"\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(said: bytes) -> None:
    async with connected(ShortDeadlines) as (reader, writer):
        writer.write(said)

        heard = await asyncio.wait_for(reader.read(), 10)

    assert heard.startswith(b"HTTP/1.1 408") if said == BEGUN else heard == b""


@pytest.mark.parametrize("more", [BEGUN, b"\r\n"])
async def test_a_head_that_stops_after_an_answered_request_is_not_waited_for_either(more: bytes) -> None:
    async with connected(ShortDeadlines) as (reader, writer):
        writer.write(BEGUN + b"\r\n")
        await asyncio.wait_for(reader.readuntil(b"done"), 10)
        writer.write(more)

        heard = await asyncio.wait_for(reader.read(), 10)

    assert heard.startswith(b"HTTP/1.1 408") if more == BEGUN else heard == b""


async def test_a_request_in_many_pieces_is_answered() -> None:
    async with connected() as (reader, writer):
        for byte in BEGUN + b"\r\n":
            writer.write(bytes([byte]))
            await writer.drain()

        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n0\r\n"],
)
async def test_an_answered_client_cannot_stay_by_sending_the_rest_of_a_body_slowly(body: bytes) -> None:
    async with connected(ShortDeadlines) as (reader, writer):
        writer.write(BEGUN + body)
        await asyncio.wait_for(reader.readuntil(b"done"), 10)
        writer.write(b"1")

        assert await asyncio.wait_for(reader.read(), 10) == b""


@pytest.mark.parametrize("target", [b"/quick", b"/usual"])
async def test_a_body_that_stops_is_not_waited_for(target: bytes) -> None:
    async with served(protocol=ShortDeadlines) as (url, _, _), connection(url) as line:
        await line.send(b"POST %s HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\nabc" % target)

        assert (await line.answer()).status == 408
        assert await line.rest() == b""


@pytest.mark.parametrize("behind", [BEGUN, quick(b"next") + BEGUN, quick(b"next")[:-1]], ids=["head", "second", "body"])
async def test_half_a_request_behind_one_that_takes_long_does_not_cost_the_answer(behind: bytes) -> None:
    async with served(protocol=ShortDeadlines) as (url, application, _), connection(url) as line:
        await line.send(DOZE + behind)
        await application.dozes.wait()
        asyncio.get_running_loop().call_later(3 * ShortDeadlines.head_seconds, application.woken.set)

        assert (await line.answer()).body == b"quick ? doze"


async def test_requests_whose_heads_are_cut_again_and_again_all_arrive() -> None:
    request = quick(b"a" * 5000)
    said, cut, times = request * 100, 20, 100
    assert len(said) > MAX_BYTES
    async with served() as (url, _, _), connection(url) as line:
        await line.send(said[:cut])
        for start in range(cut, len(said), len(request)):
            await line.send(said[start : start + len(request)])
            if start + len(request) <= len(said):
                assert (await line.answer()).status == 200
                times -= 1

        assert times == 1
        assert (await line.answer()).status == 200


async def test_what_follows_a_body_is_no_header_of_its_request() -> None:
    told = b"POST /told HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n0\r\nauthorization: me\r\n\r\n"
    async with served() as (url, _, _), connection(url) as line:
        await line.send(told)

        assert (await line.answer()).body == b"usual host transfer-encoding"
