"""One pending request to a server, with the notifications for its caller.

Notifications reach the caller in order and before the response, and their queue is bounded.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Any

from toolreeve.core.deadline import Deadline
from toolreeve.core.mcp import McpPeer
from toolreeve.rpc.pending import OutstandingRequest

_MAX_QUEUED = 256
_FLUSH_SECONDS = 5.0
# Requests that make a server work for a caller: only for these may it ask the caller something.
_CALLER_METHODS = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_SEVERITY = {level: number for number, level in enumerate(_LEVELS)}


class PendingRequest(OutstandingRequest):
    """`deadline` is that of the call it is made for."""

    __slots__ = ("_forwarder", "_loop", "_queue", "deadline", "peer", "serves_caller")

    def __init__(
        self,
        method: str,
        peer: McpPeer | None,
        timeout: float | None,
        loop: asyncio.AbstractEventLoop,
        deadline: Deadline | None = None,
    ) -> None:
        super().__init__(loop, timeout)
        self.peer = peer
        self.deadline = deadline
        self.serves_caller = method in _CALLER_METHODS
        self._loop = loop
        self._queue: deque[tuple[str, Mapping[str, Any]]] | None = None
        self._forwarder: asyncio.Task[None] | None = None

    def forward(self, method: str, params: Mapping[str, Any]) -> None:
        """Queue a notification for the caller. The oldest is dropped: a slow caller misses some, and delays none."""
        if self._queue is None:
            self._queue = deque(maxlen=_MAX_QUEUED)
        self._queue.append((method, params))
        if self._forwarder is None:
            self._forwarder = self._loop.create_task(self._forward_queued())

    async def _forward_queued(self) -> None:
        while self.peer is not None and self._queue:
            with contextlib.suppress(Exception):  # a caller that cannot be notified still gets the response
                await self.peer.notify(*self._queue.popleft())
        self._forwarder = None

    def forward_log(self, params: Mapping[str, Any]) -> None:
        """Forward a log message, if the caller wants its level."""
        if self.peer is None or self.peer.log_level is None:
            return
        level = params.get("level")
        if isinstance(level, str) and _SEVERITY.get(level, -1) >= _SEVERITY.get(self.peer.log_level, 0):
            self.forward("notifications/message", params)

    @property
    def is_forwarding(self) -> bool:
        return self._forwarder is not None

    async def flush(self) -> None:
        if self._forwarder is not None:
            await asyncio.wait({self._forwarder}, timeout=_FLUSH_SECONDS)

    def close(self) -> None:
        super().close()
        if self._forwarder is not None:
            self._forwarder.cancel()
