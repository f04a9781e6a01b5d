"""TLS server name: read the ClientHello that opens a tunnel.

What begins like TLS passes only behind a whole ClientHello with one plain name or none. That name is judged; what is
said inside TLS (an encrypted ClientHello, a renegotiation, the Host of a request) cannot be seen and is not.
"""

import asyncio
import re
from typing import NamedTuple

from toolreeve.core.errors import ToolError
from toolreeve.core.urls import forbidden

_CHANGE_CIPHER, _ALERT, _HANDSHAKE, _APPLICATION, _HEARTBEAT = range(0x14, 0x19)
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_SERVER_NAME, _HOST_NAME = 0, 0
_MAX_RECORD = 16384
_MAX_HELLO = 65536
_MAX_RECORDS = 64
_PATIENCE = 15
_NAME = re.compile(rb"[A-Za-z0-9._-]{1,253}")
_RANDOM = slice(11, 43)  # of a record that begins with a ServerHello
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


class Opening(NamedTuple):
    """What a client says first, to be sent on as it is. `name` is None where it asks for none."""

    data: bytes
    tls: bool = False
    name: str | None = None


async def read_opening(reader: asyncio.StreamReader) -> Opening:
    """Raises ToolError(URL_FORBIDDEN) for what begins like TLS and is no whole ClientHello."""
    first = await reader.read(1)
    if not first or not _CHANGE_CIPHER <= first[0] <= _HEARTBEAT:
        return Opening(first)
    return await _read_hello(reader, first, b"")


async def read_second_hello(reader: asyncio.StreamReader, first: bytes) -> Opening:
    """What a client says to a server that asked it to try again: a new ClientHello, whose name counts.

    Early data and a change of ciphers may come before it.
    """
    passed = b""
    while first[0] in (_CHANGE_CIPHER, _APPLICATION):
        rest = await reader.readexactly(4)
        passed += first + rest + await reader.readexactly(int.from_bytes(rest[2:], "big"))
        if len(passed) > _MAX_HELLO:
            raise forbidden("the TLS client sends too much before its second ClientHello")
        first = await reader.readexactly(1)
    return await _read_hello(reader, first, passed)


def asks_to_retry(beginning: bytes) -> bool | None:
    """Whether a server's first bytes are a HelloRetryRequest. None as long as they are too few to tell."""
    if beginning[:1] != bytes((_HANDSHAKE,)):
        return False if beginning else None
    if len(beginning) < _RANDOM.stop:
        return None
    return beginning[5] == _SERVER_HELLO and beginning[_RANDOM] == _RETRY


async def _read_hello(reader: asyncio.StreamReader, first: bytes, passed: bytes) -> Opening:
    try:
        async with asyncio.timeout(_PATIENCE):
            raw, message = await _read_records(reader, first)
    except (TimeoutError, asyncio.IncompleteReadError):
        raise _broken("ends before it is whole") from None
    return Opening(passed + raw, tls=True, name=server_name(message))


async def _read_records(reader: asyncio.StreamReader, first: bytes) -> tuple[bytes, bytes]:
    """The records that hold one handshake message, as they came, and the message in them."""
    raw, message = b"", b""
    for _ in range(_MAX_RECORDS):
        header = first + await reader.readexactly(5 - len(first))
        first = b""
        size = int.from_bytes(header[3:], "big")
        if header[0] != _HANDSHAKE or header[1] != 3:
            raise _broken("is mixed with other records")
        if not 0 < size <= _MAX_RECORD:
            raise _broken(f"has a record of {size} bytes")
        content = await reader.readexactly(size)
        raw += header + content
        message += content
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big"):
            return raw, message
        if len(message) > _MAX_HELLO:
            break
    raise _broken("is too large")


def server_name(message: bytes) -> str | None:
    """The name that a ClientHello asks for; None if it asks for none. Raises ToolError(URL_FORBIDDEN)."""
    reading = _Reading(message)
    try:
        if reading.number(1) != _CLIENT_HELLO:
            raise _broken("is another message")
        hello = _Reading(reading.take(reading.number(3)))
        reading.end()
        hello.take(2 + 32)
        hello.take(hello.number(1))
        hello.take(hello.number(2))
        hello.take(hello.number(1))
        if not hello.left:
            return None
        extensions = _Reading(hello.take(hello.number(2)))
        hello.end()
        return _name(extensions)
    except EOFError:
        raise _broken("does not have the lengths that it says") from None


def _name(extensions: "_Reading") -> str | None:
    found: bytes | None = None
    while extensions.left:
        kind = extensions.number(2)
        content = _Reading(extensions.take(extensions.number(2)))
        if kind != _SERVER_NAME:
            continue
        if found is not None:
            raise _broken("names a server twice")
        names = _Reading(content.take(content.number(2)))
        content.end()
        if names.number(1) != _HOST_NAME:
            raise _broken("names its server in an unknown way")
        found = names.take(names.number(2))
        names.end()
    if found is None:
        return None
    if not _NAME.fullmatch(found):
        raise _broken(f"asks for {found[:100]!r}, which is no host name")
    return found.decode("ascii")


def _broken(how: str) -> ToolError:
    return forbidden(f"what begins like TLS must be one whole ClientHello; this one {how}")


class _Reading:
    """Bytes that are taken from the front. Raises EOFError where there are too few, or too many."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._place

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise EOFError
        self._place += size
        return self._data[self._place - size : self._place]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def end(self) -> None:
        if self.left:
            raise EOFError
