"""Server-sent events: frames, heartbeats, and the response that carries them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import StreamingResponse

from toolreeve.core import json
from toolreeve.serve.api.endpoint import SSE

HEARTBEAT_SECONDS = 10.0
HEARTBEAT = b"event: heartbeat\ndata: {}\n\n"
"""An event, not a comment: a page in a browser sees no comments, and must notice a dead connection."""
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no", "x-content-type-options": "nosniff"}


def frame(event: str, data: Any, number: int | None = None) -> bytes:
    """One event. JSON has no line breaks, so that `data` is one line."""
    head = f"event: {event}\n" if number is None else f"id: {number}\nevent: {event}\n"
    return b"%sdata: %s\n\n" % (head.encode(), json.dumps(data))


def event_stream(frames: AsyncIterator[bytes], left: Callable[[], Any] | None = None) -> StreamingResponse:
    """`left` is called if the client disconnects before the end."""
    return StreamingResponse(_guarded(frames, left), media_type=SSE, headers=_HEADERS)


async def _guarded(frames: AsyncIterator[bytes], left: Callable[[], Any] | None) -> AsyncIterator[bytes]:
    ended = False
    try:
        async for each in with_heartbeats(frames):
            yield each
        ended = True
    finally:
        if not ended and left is not None:
            left()


async def with_heartbeats(frames: AsyncIterator[bytes], seconds: float = HEARTBEAT_SECONDS) -> AsyncIterator[bytes]:
    """A heartbeat whenever there was nothing else for some time, so that both sides notice a dead connection."""
    iterator = aiter(frames)
    pending: asyncio.Task[bytes] = asyncio.ensure_future(anext(iterator))
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=seconds)
            if not done:
                yield HEARTBEAT
                continue
            try:
                value = pending.result()
            except StopAsyncIteration:
                return
            pending = asyncio.ensure_future(anext(iterator))
            yield value
    finally:
        pending.cancel()
        with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
            await pending
