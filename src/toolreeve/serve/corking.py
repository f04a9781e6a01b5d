"""How does an answer leave in one piece? What is written in one go of the loop is sent with one system call.

Uvicorn writes the head of an answer and its body apart; for small answers, sending them apart is most of the work.
"""

import asyncio
from typing import Any, cast

from toolreeve.serve.heads import HeadProtocol

LARGE = 64 * 1024


class Corked:
    """A transport that waits with small writes until the loop has gone on."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> None:
        if len(data) > LARGE:
            self._flush()
            self._transport.write(data)
            return
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class CorkedProtocol(HeadProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Corked(transport, self.loop)))
