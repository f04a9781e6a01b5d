"""Streams of events: heartbeats while nothing happens."""

import asyncio
from collections.abc import AsyncIterator

from toolreeve.serve.api.streams import HEARTBEAT, with_heartbeats


async def test_a_quiet_stream_has_heartbeats_that_a_browser_can_see() -> None:
    more = asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        yield b"first"
        await more.wait()
        yield b"second"

    seen = []
    async for each in with_heartbeats(frames(), seconds=0.01):
        seen.append(each)
        if each == HEARTBEAT:
            more.set()

    assert (seen[0], seen[-1], HEARTBEAT in seen) == (b"first", b"second", True)
    assert HEARTBEAT.startswith(b"event: heartbeat\n")
