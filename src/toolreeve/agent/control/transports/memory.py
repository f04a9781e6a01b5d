"""In-memory transport, for tests and for a person in the same program."""

import asyncio
from collections.abc import AsyncIterator

from toolreeve.agent.control.transports.transport import Inbox, check_connected, check_unconnected


class InMemoryTransport:
    """The other side reads what is written from `get_write_receiver()` and answers with `get_read_sender()`."""

    def __init__(self, buffer_size: int = 100) -> None:
        self._written: asyncio.Queue[str] = asyncio.Queue(buffer_size)
        self._inbox = Inbox()
        self._connected = False

    def get_write_receiver(self) -> "MemoryReceiver":
        return MemoryReceiver(self._written)

    def get_read_sender(self) -> "MemorySender":
        return MemorySender(self._inbox)

    async def connect(self) -> None:
        check_unconnected(connected=self._connected)
        self._connected = True

    async def write(self, data: str) -> None:
        check_connected(connected=self._connected)
        await self._written.put(data)

    def read_messages(self) -> AsyncIterator[str]:
        return self._inbox.read()

    async def close(self) -> None:
        if self._connected:
            self._connected = False
            self._inbox.close()

    def is_ready(self) -> bool:
        return self._connected


class MemoryReceiver:
    def __init__(self, queue: "asyncio.Queue[str]") -> None:
        self._queue = queue

    async def receive(self) -> str:
        return await self._queue.get()


class MemorySender:
    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def send(self, data: str) -> None:
        self._inbox.put(data)
