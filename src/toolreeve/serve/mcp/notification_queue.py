"""Queue of change notifications to one session, sent one at a time.

It never blocks the sender. For a client that does not read, it holds one notification of each kind at most: they say
that something changed, not what.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Send = Callable[[str, Mapping[str, Any]], Awaitable[None]]


class NotificationQueue:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: dict[tuple[str, str | None], Mapping[str, Any]] = {}
        self._task: asyncio.Task[None] | None = None

    def put(self, method: str, params: Mapping[str, Any]) -> None:
        self._waiting[method, params.get("uri")] = params
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                (method, _), params = next(iter(self._waiting.items()))
                del self._waiting[method, params.get("uri")]
                await self._send(method, params)
        finally:
            self._task = None
