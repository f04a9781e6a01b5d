"""The calls that are running: found, cancelled and awaited by id."""

import asyncio
from collections.abc import Collection
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.result import ToolResult
from toolreeve.pipeline import Pipeline


class CallsInFlight:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._running: dict[str, tuple[ToolCall, asyncio.Task[Any]]] = {}
        self._idle: asyncio.Future[None] | None = None
        self._refused: Collection[str] = ()

    def __len__(self) -> int:
        return len(self._running)

    def find(self, call_id: str) -> ToolCall | None:
        return self._running[call_id][0] if call_id in self._running else None

    async def run(self, call: ToolCall) -> ToolResult:
        task = asyncio.current_task()
        if task is None:
            raise ToolreeveError("calls must be made inside an asyncio task")
        self._running[call.id] = (call, task)
        if self._is_refused(call):
            self._pipeline.revoked.add(call.id)
        try:
            return await self._pipeline.run(call)
        finally:
            self._running.pop(call.id, None)
            if self._idle is not None and not self._running and not self._idle.done():
                self._idle.set_result(None)
            if call.id in self._pipeline.revoked:
                self._pipeline.revoked.discard(call.id)
                task.uncancel()

    def refuse(self, credentials: Collection[str]) -> None:
        """Cancel the calls that were made with these credentials, and refuse those that follow."""
        self._refused = credentials
        for call_id in [call_id for call_id, (call, _) in self._running.items() if self._is_refused(call)]:
            self.cancel(call_id)

    def _is_refused(self, call: ToolCall) -> bool:
        return bool(self._refused) and call.peer is not None and call.peer.credential in self._refused

    def cancel(self, call_id: str) -> bool:
        """False if there is no such call."""
        _, task = self._running.get(call_id, (None, None))
        if task is None or call_id in self._pipeline.revoked:
            return False
        self._pipeline.revoked.add(call_id)
        return task.cancel()

    async def end(self, timeout: float) -> None:
        """Cancel all of them, and wait until each has its record."""
        if self._running:
            self._idle = asyncio.get_running_loop().create_future()
            for call_id in list(self._running):
                self.cancel(call_id)
            await asyncio.wait([self._idle], timeout=timeout)
