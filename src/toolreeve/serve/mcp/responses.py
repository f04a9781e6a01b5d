"""The HTTP response of a plain call: JSON, or a stream.

If the client disconnects, its call is cancelled. A long call is kept alive by comments in the stream, so that no
intermediary times out.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS

from toolreeve.rpc.errors import INTERNAL_ERROR
from toolreeve.serve.exchange import HttpExchange
from toolreeve.serve.mcp.encoding import writable, write
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.protocol import WireError
from toolreeve.serve.mcp.request_context import RequestContext

KEEPALIVE_SECONDS = 15.0

_logger = logging.getLogger(__name__)


class Reply:
    def __init__(
        self, handlers: Handlers, context: RequestContext, exchange: HttpExchange, *, keepalive: float
    ) -> None:
        self._handlers = handlers
        self._context = context
        self._exchange = exchange
        self._keepalive = keepalive
        self._is_streaming = False
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, params: Mapping[str, Any]) -> None:
        if self._exchange.disconnected:
            return
        self._task = asyncio.current_task()
        self._exchange.left = self._cancel
        self._schedule_keepalive()
        try:
            status, body = await self._outcome(params)
        finally:
            self._context.closed = True
            self._exchange.left = None
            if self._timer is not None:
                self._timer.cancel()
        self._finish(status, body)

    async def _outcome(self, params: Mapping[str, Any]) -> tuple[int, bytes]:
        try:
            return 200, self._message("result", await self._handlers.call(params, self._context))
        except WireError as problem:
            return self._error_response(writable(problem))
        except Exception:
            _logger.exception("tools/call failed unexpectedly")
            return self._error_response(WireError(INTERNAL_ERROR, "Internal server error"))

    def _message(self, kind: str, said: Any) -> bytes:
        return write({"jsonrpc": "2.0", "id": self._context.request_id, kind: said})

    def _error_response(self, problem: WireError) -> tuple[int, bytes]:
        return ERROR_CODE_HTTP_STATUS.get(problem.code, 200), self._message("error", problem.to_dict())

    def _finish(self, status: int, body: bytes) -> None:
        if self._is_streaming:
            self._exchange.part(b"event: message\r\ndata: " + body + b"\r\n\r\n")
            self._exchange.end()
        else:
            self._exchange.answer(status, b"application/json", body)

    def _schedule_keepalive(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._keepalive, self._send_keepalive)

    def _send_keepalive(self) -> None:
        if not self._is_streaming:
            self._is_streaming = True
            self._exchange.stream(b"text/event-stream")
        self._exchange.part(b": keep-alive\r\n\r\n")
        self._schedule_keepalive()

    def _cancel(self) -> None:
        if not self._handlers.cancel(self._context) and self._task is not None:
            self._task.cancel()
