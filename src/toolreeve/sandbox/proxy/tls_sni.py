"""TLS server name (SNI) of the ClientHello that opens a tunnel.

What begins like TLS passes only behind a whole ClientHello with one plain name or none. That name is checked; what is
inside TLS (an encrypted ClientHello, a renegotiation, the Host of a request) cannot be seen and is not.
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
_MAX_CLIENT_HELLO = 65536
_MAX_RECORDS = 64
_TIMEOUT = 15
_NAME = re.compile(rb"[A-Za-z0-9._-]{1,253}")
_RANDOM = slice(11, 43)  # of a record that begins with a ServerHello
_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


class Opening(NamedTuple):
    """The first bytes of a client, to be forwarded as they are. `name` is None where it asks for none."""

    data: bytes
    tls: bool = False
    name: str | None = None


async def read_opening(reader: asyncio.StreamReader) -> Opening:
    """Raises ToolError(URL_FORBIDDEN) for what begins like TLS and is not a whole ClientHello."""
    first = await reader.read(1)
    if not first or not _CHANGE_CIPHER <= first[0] <= _HEARTBEAT:
        return Opening(first)
    return await _read_client_hello(reader, first, b"")


async def read_second_client_hello(reader: asyncio.StreamReader, first: bytes) -> Opening:
    """The ClientHello after a HelloRetryRequest, whose name counts. Early data and a ChangeCipherSpec may precede
    it."""
    preceding = b""
    while first[0] in (_CHANGE_CIPHER, _APPLICATION):
        rest = await reader.readexactly(4)
        preceding += first + rest + await reader.readexactly(int.from_bytes(rest[2:], "big"))
        if len(preceding) > _MAX_CLIENT_HELLO:
            raise forbidden("the TLS client sends too much before its second ClientHello")
        first = await reader.readexactly(1)
    return await _read_client_hello(reader, first, preceding)


def is_retry_request(beginning: bytes) -> bool | None:
    """Whether a server's first bytes are a HelloRetryRequest. None while they are too few to decide."""
    if beginning[:1] != bytes((_HANDSHAKE,)):
        return False if beginning else None
    if len(beginning) < _RANDOM.stop:
        return None
    return beginning[5] == _SERVER_HELLO and beginning[_RANDOM] == _RETRY_RANDOM


async def _read_client_hello(reader: asyncio.StreamReader, first: bytes, preceding: bytes) -> Opening:
    try:
        async with asyncio.timeout(_TIMEOUT):
            raw, message = await _read_records(reader, first)
    except (TimeoutError, asyncio.IncompleteReadError):
        raise _malformed("is incomplete") from None
    return Opening(preceding + raw, tls=True, name=server_name(message))


async def _read_records(reader: asyncio.StreamReader, first: bytes) -> tuple[bytes, bytes]:
    """The records that hold one handshake message, unchanged, and the message in them."""
    raw = b""
    message = b""
    for _ in range(_MAX_RECORDS):
        header = first + await reader.readexactly(5 - len(first))
        first = b""
        size = int.from_bytes(header[3:], "big")
        if header[0] != _HANDSHAKE or header[1] != 3:
            raise _malformed("is mixed with other records")
        if not 0 < size <= _MAX_RECORD:
            raise _malformed(f"has a record of {size} bytes")
        content = await reader.readexactly(size)
        raw += header + content
        message += content
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big"):
            return raw, message
        if len(message) > _MAX_CLIENT_HELLO:
            break
    raise _malformed("is too large")


def server_name(message: bytes) -> str | None:
    """The name that a ClientHello asks for, or None. Raises ToolError(URL_FORBIDDEN)."""
    handshake = _Cursor(message)
    try:
        if handshake.number(1) != _CLIENT_HELLO:
            raise _malformed("is another message")
        hello = _Cursor(handshake.take(handshake.number(3)))
        handshake.end()
        hello.take(2 + 32)
        hello.take(hello.number(1))
        hello.take(hello.number(2))
        hello.take(hello.number(1))
        if not hello.left:
            return None
        extensions = _Cursor(hello.take(hello.number(2)))
        hello.end()
        return _name(extensions)
    except EOFError:
        raise _malformed("has wrong lengths") from None


def _name(extensions: "_Cursor") -> str | None:
    found: bytes | None = None
    while extensions.left:
        kind = extensions.number(2)
        content = _Cursor(extensions.take(extensions.number(2)))
        if kind != _SERVER_NAME:
            continue
        if found is not None:
            raise _malformed("names a server twice")
        names = _Cursor(content.take(content.number(2)))
        content.end()
        if names.number(1) != _HOST_NAME:
            raise _malformed("names its server by an unknown type")
        found = names.take(names.number(2))
        names.end()
    if found is None:
        return None
    if not _NAME.fullmatch(found):
        raise _malformed(f"asks for {found[:100]!r}, which is not a host name")
    return found.decode("ascii")


def _malformed(how: str) -> ToolError:
    return forbidden(f"a TLS connection must begin with one whole ClientHello; this one {how}")


class _Cursor:
    """Takes bytes from the front. Raises EOFError where there are too few, or too many."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise EOFError
        self._position += size
        return self._data[self._position - size : self._position]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def end(self) -> None:
        if self.left:
            raise EOFError
