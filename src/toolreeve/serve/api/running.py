"""Running calls of the API: with progress, in the background, or both.

A call that runs in the background outlives its request, not the server.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from toolreeve.approval.request import Answer, Request
from toolreeve.core.call import ToolCall
from toolreeve.core.peer import PeerUnavailable
from toolreeve.core.result import ToolResult
from toolreeve.serve.tokens import Credential

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

MAX_RUNNING = 256
MAX_PROGRESS = 1_000


class HttpPeer:
    """The caller of one call. Nobody can be asked through it: questions go to the inbox. With `follows`, it collects
    the progress of the call."""

    can_ask = False
    defers = False
    decision = None

    def __init__(self, session: str, credential: str, *, follows: bool = False) -> None:
        self.session = session
        self.credential = credential
        self.wants_progress = follows
        self.texts: asyncio.Queue[str | None] = asyncio.Queue(MAX_PROGRESS)

    async def ask(self, request: Any) -> Any:  # noqa: ARG002
        raise PeerUnavailable

    async def progress(self, text: str) -> None:
        """A client that does not read loses lines, and delays nobody."""
        if self.texts.qsize() < MAX_PROGRESS - 1:
            self.texts.put_nowait(text)


class DecidingPeer(HttpPeer):
    """A person who asks for this very call and may approve calls: their request is their answer."""

    can_ask = True

    def __init__(self, session: str, credential: Credential) -> None:
        super().__init__(session, credential.id)
        self._by = f"{credential.principal.user} via {credential.channel}"

    async def ask(self, request: Request) -> Answer:
        return Answer(granted=True, digest=request.digest, by=self._by)


class RunningCalls:
    def __init__(self, reeve: "Toolreeve") -> None:
        self._reeve = reeve
        self._tasks: dict[str, asyncio.Task[ToolResult]] = {}

    def start(self, call: ToolCall) -> "asyncio.Task[ToolResult] | None":
        """None if too many run already."""
        if len(self._tasks) >= MAX_RUNNING:
            return None
        task = asyncio.create_task(self._reeve.run(call))
        self._tasks[call.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(call.id, None))
        return task

    def is_running(self, call_id: str) -> bool:
        return call_id in self._tasks

    async def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def follow(task: "asyncio.Task[ToolResult]", peer: HttpPeer) -> AsyncIterator[str | ToolResult]:
    """The progress of a call, and at the end its result."""
    task.add_done_callback(lambda _: peer.texts.put_nowait(None))
    while (text := await peer.texts.get()) is not None:
        yield text
    yield await task


def session_of(credential: Credential, name: str | None) -> str:
    """The session of a caller's own name for it. A name chosen by another credential is another session."""
    return f"{own_sessions(credential)}{_digest(name or '')}"


def own_sessions(credential: Credential) -> str:
    """What the names of all sessions of this credential begin with, and no others."""
    return f"http-{_digest(credential.id)}-"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
