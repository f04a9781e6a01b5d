"""How does one plain call come back to its client? As a JSON document; as a stream, if it takes long.

A client that goes away takes its call with it. A client that waits hears from us now and then, so that nothing between
us takes the silence for the end.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from starlette.types import Receive, Send

from toolreeve.serve.mcp.caller import Caller
from toolreeve.serve.mcp.desk import Desk
from toolreeve.serve.mcp.wire import INTERNAL_ERROR, WireError
from toolreeve.serve.mcp.writing import writable, write

GLANCE = 0.02
"""Seconds that a call gets before anybody watches over it: most have ended by then."""
SILENCE = 15.0
_JSON = (b"content-type", b"application/json")
_STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]

_logger = logging.getLogger(__name__)


class Reply:
    def __init__(self, desk: Desk, caller: Caller, receive: Receive, send: Send, *, silence: float) -> None:
        self._desk, self._caller, self._receive, self._send = desk, caller, receive, send
        self._silence = silence
        self._over = self._gone = self._streams = False
        self._watch: asyncio.Task[None] | None = None

    async def give(self, params: Mapping[str, Any]) -> None:
        """Make the call and send what comes of it."""
        timer = asyncio.get_running_loop().call_later(GLANCE, self._start_watching, asyncio.current_task())
        try:
            status, body = await self._outcome(params)
        except asyncio.CancelledError:
            if not self._gone:
                raise
            return
        finally:
            self._over = self._caller.closed = True
            timer.cancel()
            if self._watch is not None:
                self._watch.cancel()
                await asyncio.wait({self._watch})
        if not self._gone:
            await self._finish(status, body)

    async def _outcome(self, params: Mapping[str, Any]) -> tuple[int, bytes]:
        try:
            return 200, self._message("result", await self._desk.call(params, self._caller))
        except WireError as problem:
            return self._refusal(writable(problem))
        except Exception:
            _logger.exception("a call failed in the door itself")
            return self._refusal(WireError(INTERNAL_ERROR, "Internal server error"))

    def _message(self, kind: str, said: Any) -> bytes:
        return write({"jsonrpc": "2.0", "id": self._caller.request_id, kind: said})

    def _refusal(self, problem: WireError) -> tuple[int, bytes]:
        return ERROR_CODE_HTTP_STATUS.get(problem.code, 200), self._message("error", problem.to_dict())

    async def _finish(self, status: int, body: bytes) -> None:
        if self._streams:
            event = b"event: message\r\ndata: " + body + b"\r\n\r\n"
            await self._send({"type": "http.response.body", "body": event})
            return
        headers = [_JSON, (b"content-length", str(len(body)).encode())]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def _start_watching(self, task: "asyncio.Task[Any] | None") -> None:
        self._watch = asyncio.get_running_loop().create_task(self._watch_over(task))

    async def _watch_over(self, task: "asyncio.Task[Any] | None") -> None:
        while not await self._leaves():
            if not self._streams:
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
                self._streams = True
            await self._send({"type": "http.response.body", "body": b": still at it\r\n\r\n", "more_body": True})
        if not self._over:
            self._gone = True
            if not self._desk.cancel(self._caller) and task is not None:
                task.cancel()

    async def _leaves(self) -> bool:
        """Whether the client goes away; False if it is still there after a while."""
        try:
            async with asyncio.timeout(self._silence):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True
