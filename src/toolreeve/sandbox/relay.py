"""How do bytes go to and fro once a connection is let through? Counted, capped, and ended when nothing moves.

Of a plain HTTP request exactly the bytes of its body go out: a second request hidden behind it would be unjudged.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from toolreeve.core.errors import ToolError
from toolreeve.core.network import Connection
from toolreeve.sandbox.hello import read_opening

Vet = Callable[[str], Awaitable[None]]

_PIECE = 65536
_CHUNK_LINE = 4096


class Traffic:
    """What went through so far, and what ended it."""

    def __init__(self, max_bytes: int, idle_timeout: float) -> None:
        self.sent = 0
        self.received = 0
        self.ended = ""
        self.refused = False
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
            raise _Ended(f"more than {self.max_bytes} bytes went through")


class _Ended(Exception):
    """A limit ends the connection."""


async def relay(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connection: Connection,
    *,
    body: int | str | None,
    traffic: Traffic,
    vet: Vet,
) -> None:
    """Until the far side has ended, and for a tunnel the near side too; or a limit is reached. `vet` judges the name
    that a TLS client in a tunnel asks for."""
    try:
        async with asyncio.TaskGroup() as group:
            outgoing = group.create_task(_send(reader, connection.writer, body, traffic, vet))
            watch = group.create_task(_watch(traffic))
            await _pump(connection.reader, writer, None, traffic, outgoing=False)
            _half_close(writer)
            if body is None:
                await asyncio.wait([outgoing])
            outgoing.cancel()
            watch.cancel()
    except* _Ended as ended:
        traffic.ended = str(ended.exceptions[0])
    except* ToolError as refused:
        traffic.ended, traffic.refused = str(refused.exceptions[0]), True
    except* (OSError, EOFError, asyncio.LimitOverrunError):
        traffic.ended = "the connection broke"


async def _watch(traffic: Traffic) -> None:
    loop = asyncio.get_running_loop()
    left = traffic.idle_timeout
    while left > 0:
        await asyncio.sleep(left)
        left = traffic.moved_at + traffic.idle_timeout - loop.time()
    raise _Ended(f"nothing moved for {traffic.idle_timeout:g} s")


async def _send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: int | str | None, traffic: Traffic, vet: Vet
) -> None:
    if body == "chunked":
        await _pump_chunks(reader, writer, traffic)
    elif body is None:
        opening, name = await read_opening(reader)
        if name is not None:
            await vet(name)
        traffic.count(len(opening), outgoing=True)
        writer.write(opening)
        await _pump(reader, writer, None, traffic, outgoing=True)
        _half_close(writer)
    else:
        await _pump(reader, writer, int(body), traffic, outgoing=True)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int | None, traffic: Traffic, *, outgoing: bool
) -> None:
    """So many bytes, or all there are."""
    left = size
    while left is None or left > 0:
        piece = await reader.read(_PIECE if left is None else min(_PIECE, left))
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
                traffic.count(len(trailer), outgoing=True)
            writer.write(b"\r\n")
            await writer.drain()
            return
        await _pump(reader, writer, size, traffic, outgoing=True)
        if await reader.readexactly(2) != b"\r\n":
            raise _Ended("a chunk of the request is longer than it says")
        writer.write(b"\r\n")


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if len(line) > _CHUNK_LINE or not 0 < len(digits) <= 12 or digits.strip(b"0123456789abcdefABCDEF"):
        raise _Ended("the request's body is not chunked as it says")
    return int(digits, 16)


def _half_close(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
