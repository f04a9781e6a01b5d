"""Raw HTTP client: requests byte for byte, and their responses in order."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

PATIENCE = 20

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> Answer:
        """The next one, whole."""
        async with asyncio.timeout(PATIENCE):
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
            }
            return Answer(int(first.split()[1]), headers, await self._body(headers))

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += await self._reader.readexactly(size)
            await self._reader.readline()
        await self._reader.readline()
        return body

    async def until(self, said: bytes) -> None:
        """Read up to this, whatever it is part of."""
        async with asyncio.timeout(PATIENCE):
            await self._reader.readuntil(said)

    async def rest(self) -> bytes:
        """All that comes until the other side closes."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read()

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connection(url: str) -> AsyncIterator[Connection]:
    host, _, port = url.removeprefix("http://").partition("/")[0].rpartition(":")
    made = Connection(*await asyncio.open_connection(host, int(port)))
    try:
        yield made
    finally:
        made.close()


def post(headers: Sequence[Header], body: bytes, *, target: bytes = b"/mcp", version: bytes = b"1.1") -> bytes:
    lines = b"".join(b"%s: %s\r\n" % each for each in headers)
    return b"POST %s HTTP/%s\r\n%scontent-length: %d\r\n\r\n%s" % (target, version, lines, len(body), body)
