"""A proxy that runs, what it told, and somebody who speaks to it byte by byte."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from toolreeve.core.events import Event
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import HostsResolver, Resolver, parse_hosts
from toolreeve.sandbox.proxy.server import Proxy, ProxyLimits

HOSTS = "127.0.0.1 open.example\n127.0.0.2 secret.example"


class Running:
    def __init__(self, port: int, events: list[Event], told: asyncio.Event) -> None:
        self.port = port
        self.events = events
        self._told = told

    async def event(self) -> Mapping[str, object]:
        """The first event that is told."""
        return (await self.first(1))[0]

    async def first(self, count: int) -> list[Mapping[str, object]]:
        async with asyncio.timeout(10):
            while len(self.events) < count:
                self._told.clear()
                await self._told.wait()
        return [event.data for event in self.events[:count]]


@asynccontextmanager
async def proxy(
    *allow: str, resolver: Resolver | None = None, limits: ProxyLimits | None = None
) -> AsyncIterator[Running]:
    listener = socket.create_server(("127.0.0.1", 0))
    events: list[Event] = []
    told = asyncio.Event()

    def emit(event: Event) -> None:
        events.append(event)
        told.set()

    guard = NetworkGuard(NetworkSettings(allow=allow), resolver or HostsResolver(parse_hosts(HOSTS)))
    serving = asyncio.create_task(
        Proxy(guard, emit=emit, now=time.time, task_id="sandbox-1", limits=limits).serve(listener)
    )
    try:
        yield Running(listener.getsockname()[1], events, told)
        assert not serving.done(), "the proxy broke down"
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        listener.close()


async def speak(port: int, said: bytes) -> bytes:
    """Everything the proxy answers to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer
