"""Relay of an allowed connection: counted, capped, and closed when idle.

Of a plain HTTP request exactly the bytes of its body are sent, framed anew: a second request hidden behind it would be
unchecked. In a tunnel nothing is sent before the TLS server name is checked, nor after a retry before the second one
is.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable

from toolreeve.core.errors import ToolError
from toolreeve.core.network import Connection
from toolreeve.sandbox.proxy.tls_sni import Opening, is_retry_request, read_opening, read_second_client_hello

CheckName = Callable[[str], Awaitable[None]]

_CHUNK_SIZE = 65536
_CHUNK_LINE = 4096
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n")


class Traffic:
    """Bytes of a connection so far, and what ended it."""

    def __init__(self, max_bytes: int, idle_timeout: float) -> None:
        self.sent = 0
        self.received = 0
        self.ended = ""
        self.is_refused = False
        self.max_bytes = max_bytes
        self.idle_timeout = idle_timeout
        self.moved_at = asyncio.get_running_loop().time()

    def count(self, size: int, *, outgoing: bool) -> None:
        """Raises _Ended at the cap."""
        if outgoing:
            self.sent += size
        else:
            self.received += size
        self.moved_at = asyncio.get_running_loop().time()
        if self.sent + self.received > self.max_bytes:
            raise _Ended(f"limit of {self.max_bytes} bytes per connection reached")


class _Ended(Exception):
    """A limit ends the connection."""


async def relay(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connection: Connection,
    *,
    body: int | str | None,
    traffic: Traffic,
    check_name: CheckName,
) -> None:
    """Until the server closes, and for a tunnel the client too; or a limit is reached. `check_name` refuses a TLS
    server name in a tunnel by raising ToolError."""
    retry: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    try:
        async with asyncio.TaskGroup() as group:
            outgoing = group.create_task(_send(reader, connection.writer, body, traffic, check_name, retry))
            watch = group.create_task(_watch_idle(traffic))
            await _receive(connection.reader, writer, traffic, retry)
            _half_close(writer)
            if body is None:
                await asyncio.wait([outgoing])
            outgoing.cancel()
            watch.cancel()
    except* _Ended as ended:
        traffic.ended = str(ended.exceptions[0])
    except* ToolError as refused:
        traffic.ended = str(refused.exceptions[0])
        traffic.is_refused = True
    except* (OSError, EOFError, asyncio.LimitOverrunError):
        traffic.ended = "the connection was lost"


async def _watch_idle(traffic: Traffic) -> None:
    loop = asyncio.get_running_loop()
    left = traffic.idle_timeout
    while left > 0:
        await asyncio.sleep(left)
        left = traffic.moved_at + traffic.idle_timeout - loop.time()
    raise _Ended(f"idle for {traffic.idle_timeout:g} s")


async def _send(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    body: int | str | None,
    traffic: Traffic,
    check_name: CheckName,
    retry: "asyncio.Future[bool]",
) -> None:
    if body == "chunked":
        await _pump_chunks(reader, writer, traffic)
    elif body is None:
        opening = await read_opening(reader)
        await _send_opening(opening, writer, traffic, check_name)
        if opening.tls and (first := await reader.read(1)):
            following = await read_second_client_hello(reader, first) if await retry else Opening(first)
            await _send_opening(following, writer, traffic, check_name)
        await _pump(reader, writer, None, traffic, outgoing=True)
        _half_close(writer)
    else:
        await _pump(reader, writer, int(body), traffic, outgoing=True)


async def _send_opening(
    opening: Opening, writer: asyncio.StreamWriter, traffic: Traffic, check_name: CheckName
) -> None:
    if opening.name is not None:
        await check_name(opening.name)
    traffic.count(len(opening.data), outgoing=True)
    writer.write(opening.data)


async def _receive(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: Traffic, retry: "asyncio.Future[bool]"
) -> None:
    """All bytes of the server; the first of them show whether it asks a TLS client for a second ClientHello."""
    beginning = b""
    while (is_retry := is_retry_request(beginning)) is None:
        piece = await reader.read(_CHUNK_SIZE)
        if not piece:
            break
        traffic.count(len(piece), outgoing=False)
        writer.write(piece)
        beginning += piece
    retry.set_result(bool(is_retry))
    await _pump(reader, writer, None, traffic, outgoing=False)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int | None, traffic: Traffic, *, outgoing: bool
) -> None:
    """`size` bytes, or all until the end."""
    left = size
    while left is None or left > 0:
        piece = await reader.read(_CHUNK_SIZE if left is None else min(_CHUNK_SIZE, left))
        if not piece:
            if left is not None:
                raise EOFError
            return
        left = None if left is None else left - len(piece)
        traffic.count(len(piece), outgoing=outgoing)
        writer.write(piece)
        await writer.drain()


async def _pump_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: Traffic) -> None:
    """A chunked body, framed anew so that both sides agree where it ends; extensions and trailers are dropped."""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = _chunk_size(line)
        writer.write(b"%x\r\n" % size)
        if size == 0:
            while (trailer := await reader.readuntil(b"\r\n")) != b"\r\n":
                if not _TRAILER.fullmatch(trailer):
                    raise _Ended("a trailer of the request is not a header")
                traffic.count(len(trailer), outgoing=True)
            writer.write(b"\r\n")
            await writer.drain()
            return
        await _pump(reader, writer, size, traffic, outgoing=True)
        if await reader.readexactly(2) != b"\r\n":
            raise _Ended("a chunk of the request is longer than its size")
        writer.write(b"\r\n")


def _chunk_size(line: bytes) -> int:
    found = _CHUNK.fullmatch(line)
    if found is None or len(line) > _CHUNK_LINE:
        raise _Ended("the request body is not chunked as declared")
    return int(found[1], 16)


def _half_close(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
