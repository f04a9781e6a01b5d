"""Whom does a TLS client ask for? The name in its first message, which may differ from the host of its tunnel.

What starts like TLS but hides its first message in pieces is refused: only somebody who dodges this would send it so.
"""

import asyncio

from toolreeve.core.urls import forbidden

_HANDSHAKE = 0x16
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_MAX_RECORD = 16384


async def read_opening(reader: asyncio.StreamReader) -> tuple[bytes, str | None]:
    """The client's first bytes, and the name in them if they are TLS. Raises ToolError(URL_FORBIDDEN)."""
    first = await reader.read(1)
    if not first or first[0] != _HANDSHAKE:
        return first, None
    header = first + await reader.readexactly(4)
    size = int.from_bytes(header[3:5], "big")
    if header[1] != 3 or not 0 < size <= _MAX_RECORD:
        return header, None
    record = await reader.readexactly(size)
    return header + record, server_name(record)


def server_name(record: bytes) -> str | None:
    """The name that a ClientHello asks for; None if it names nobody. Raises ToolError(URL_FORBIDDEN) if it is cut."""
    reading = _Reading(record)
    try:
        if reading.number(1) != _CLIENT_HELLO:
            return None
        hello = _Reading(reading.take(reading.number(3)))
        hello.take(2 + 32)
        hello.take(hello.number(1))
        hello.take(hello.number(2))
        hello.take(hello.number(1))
        return _named(_Reading(hello.take(hello.number(2)))) if hello.left else None
    except EOFError:
        raise forbidden("the first message of the TLS client is cut into pieces") from None


def _named(extensions: "_Reading") -> str | None:
    while extensions.left:
        kind = extensions.number(2)
        content = _Reading(extensions.take(extensions.number(2)))
        if kind == _SERVER_NAME:
            content.take(3)
            return content.take(content.number(2)).decode("latin-1")
    return None


class _Reading:
    """Bytes that are taken from the front. Raises EOFError where there are too few."""

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
