"""Transport over standard input and output: one JSON object a line."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from toolreeve.agent.control.transports.transport import check_unconnected

LONGEST_LINE = 1 << 24


class StdioControlTransport:
    """The descriptors are those of the process by default."""

    def __init__(self, stdin: int | None = None, stdout: int | None = None) -> None:
        self._stdin = sys.stdin.fileno() if stdin is None else stdin
        self._stdout = sys.stdout.fileno() if stdout is None else stdout
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.ReadTransport | None = None

    async def connect(self) -> None:
        check_unconnected(connected=self._reader is not None)
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        pipe = os.fdopen(os.dup(self._stdin), "rb", buffering=0)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._reader = reader

    async def write(self, data: str) -> None:
        line = f"{data}\n".encode()
        await asyncio.to_thread(_write_all, self._stdout, line)

    async def read_messages(self) -> AsyncIterator[str]:
        if self._reader is None:
            raise ConnectionError("the transport is not connected")
        while line := await self._reader.readline():
            if text := line.decode(errors="replace").strip():
                yield text

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def is_ready(self) -> bool:
        """Always: standard input and output need no connection."""
        return True


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
