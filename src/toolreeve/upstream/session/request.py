"""What becomes of one request that is on its way? It is answered, fails, or runs out of time.

What the caller is told comes in order and before the answer, and how much waits to be told is bounded.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Any

from toolreeve.core.deadline import Deadline
from toolreeve.core.mcp import McpPeer
from toolreeve.upstream.transports.transport import Message

_BACKLOG = 256
_LAST_WORDS = 5.0
# Requests that make a server work for somebody: only for these does it have reason to ask back.
_WORK = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})
_SEVERITY = {
    name: number
    for number, name in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"),
    )
}


class PendingRequest:
    """One request. `answer` gets the message that answers it; `deadline` is that of the call it is made for."""

    __slots__ = ("_loop", "_teller", "_timer", "_words", "answer", "deadline", "peer", "works")

    def __init__(
        self,
        method: str,
        peer: McpPeer | None,
        timeout: float | None,
        loop: asyncio.AbstractEventLoop,
        deadline: Deadline | None = None,
    ) -> None:
        self.answer: asyncio.Future[Message] = loop.create_future()
        self.peer, self.deadline = peer, deadline
        self.works = method in _WORK
        self._loop = loop
        self._timer = None if timeout is None else loop.call_later(timeout, self._expire)
        self._words: deque[tuple[str, Mapping[str, Any]]] | None = None
        self._teller: asyncio.Task[None] | None = None

    def fail(self, problem: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(problem)
            self.answer.exception()  # whoever waited may have gone

    def _expire(self) -> None:
        self.fail(TimeoutError())

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """The oldest of what waits gives way: a caller that does not listen misses something, and holds up nothing."""
        if self._words is None:
            self._words = deque(maxlen=_BACKLOG)
        self._words.append((method, params))
        if self._teller is None:
            self._teller = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        while self.peer is not None and self._words:
            with contextlib.suppress(Exception):  # whoever cannot be told still gets the answer
                await self.peer.notify(*self._words.popleft())
        self._teller = None

    def log(self, params: Mapping[str, Any]) -> None:
        """A log line, if the caller wants such."""
        if self.peer is None or (least := self.peer.log_level) is None:
            return
        level = params.get("level")
        if isinstance(level, str) and _SEVERITY.get(level, -1) >= _SEVERITY.get(least, 0):
            self.tell("notifications/message", params)

    @property
    def is_telling(self) -> bool:
        return self._teller is not None

    async def told(self) -> None:
        if self._teller is not None:
            await asyncio.wait({self._teller}, timeout=_LAST_WORDS)

    def land(self) -> None:
        """Nothing of it goes on."""
        if self._timer is not None:
            self._timer.cancel()
        if self._teller is not None:
            self._teller.cancel()
