"""A running proxy with its events, and a client that sends raw bytes."""

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


class RunningProxy:
    def __init__(self, port: int, events: list[Event], emitted: asyncio.Event) -> None:
        self.port = port
        self.events = events
        self._emitted = emitted

    async def event(self) -> Mapping[str, object]:
        """The first event."""
        return (await self.first(1))[0]

    async def first(self, count: int) -> list[Mapping[str, object]]:
        async with asyncio.timeout(10):
            while len(self.events) < count:
                self._emitted.clear()
                await self._emitted.wait()
        return [event.data for event in self.events[:count]]


@asynccontextmanager
async def proxy(
    *allow: str,
    resolver: Resolver | None = None,
    limits: ProxyLimits | None = None,
    hosts: frozenset[str] | None = None,
) -> AsyncIterator[RunningProxy]:
    listener = socket.create_server(("127.0.0.1", 0))
    events: list[Event] = []
    emitted = asyncio.Event()

    def emit(event: Event) -> None:
        events.append(event)
        emitted.set()

    guard = NetworkGuard(NetworkSettings(allow=allow), resolver or HostsResolver(parse_hosts(HOSTS)))
    serving = asyncio.create_task(
        Proxy(guard, emit=emit, now=time.time, task_id="sandbox-1", limits=limits).serve(listener, hosts)
    )
    try:
        yield RunningProxy(listener.getsockname()[1], events, emitted)
        assert not serving.done(), "the proxy crashed"
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        listener.close()


async def exchange(port: int, request: bytes) -> bytes:
    """The whole response of the proxy to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(10):
        response = await reader.read()
    writer.close()
    return response
