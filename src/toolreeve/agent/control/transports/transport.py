"""ControlTransport: carries the messages of the control protocol, one JSON text each."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable


@runtime_checkable
class ControlTransport(Protocol):
    async def connect(self) -> None:
        """Raises RuntimeError if connected already, ConnectionError if there is nobody."""
        ...

    async def write(self, data: str) -> None:
        """Raises ConnectionError if not connected."""
        ...

    def read_messages(self) -> AsyncIterator[str]: ...

    async def close(self) -> None:
        """May be called twice."""
        ...

    def is_ready(self) -> bool: ...


class Inbox:
    """Incoming messages, until it is closed."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()

    def put(self, text: str) -> None:
        self._queue.put_nowait(text)

    def close(self) -> None:
        self._queue.put_nowait(None)

    async def read(self) -> AsyncIterator[str]:
        while (text := await self._queue.get()) is not None:
            yield text


def check_unconnected(*, connected: bool) -> None:
    if connected:
        raise RuntimeError("the transport is connected already")


def check_connected(*, connected: bool) -> None:
    if not connected:
        raise ConnectionError("the transport is not connected")
