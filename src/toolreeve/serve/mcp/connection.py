"""One MCP client over a line transport, in either era.

The first served request decides the era, and no request of the other era is served after it. Every line is answered by
the rules of JSON-RPC or not at all: no input can end the connection.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolreeve.core import json
from toolreeve.core.call import LOCAL, Principal
from toolreeve.core.mcp import Era
from toolreeve.rpc.errors import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from toolreeve.rpc.messages import Id, error_response, notification, response
from toolreeve.serve.mcp.era_selection import EraSelector
from toolreeve.serve.mcp.outgoing_requests import OutgoingRequests
from toolreeve.serve.mcp.protocol import Params, WireError, progress_token
from toolreeve.serve.mcp.request_context import Asker, ClientInfo, RequestContext

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView

MAX_RUNNING = 2048
MAX_ID_LENGTH = 1024
LOSSY = frozenset({"notifications/progress", "notifications/message"})
"""Notifications that are dropped while the client does not read."""


class RequestHandlers(Protocol):
    """Answers requests: the full handlers, the startup responder, or a small server's own."""

    def methods(self, era: Era) -> Any: ...

    def initialize(self, params: Params, context: RequestContext) -> dict[str, Any]: ...

    async def answer(self, method: str, params: Params, context: RequestContext) -> dict[str, Any]: ...

    async def call(self, params: Params, context: RequestContext) -> dict[str, Any]: ...

    def cancel(self, context: RequestContext) -> bool: ...

    def watch(self, client: ClientInfo, notify: Callable[[str, Mapping[str, Any]], None]) -> Callable[[], None]: ...

    def on_notification(self, method: str) -> None: ...

    async def release(self, context: RequestContext) -> None: ...


class LineSink(Protocol):
    """The outgoing side of the transport. `clear` returns when the client has read enough to send more."""

    @property
    def congested(self) -> bool: ...

    def send(self, line: bytes) -> None: ...

    async def clear(self) -> None: ...


class McpConnection:
    """A connection that starts before the runtime has no view; `hand_over` sets it, with the final handlers. `asker`
    gives the peer that is asked for approvals instead of the client."""

    def __init__(
        self,
        handlers: RequestHandlers,
        sink: LineSink,
        *,
        session: str,
        principal: Principal = LOCAL,
        view: "ToolView | None" = None,
        asker: Asker | None = None,
    ) -> None:
        self._handlers = handlers
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._era_selector = EraSelector(session, principal, view, asker=asker)
        self._running: dict[Id, tuple[asyncio.Task[None], RequestContext]] = {}
        self._outgoing = OutgoingRequests(self._post)
        self._unwatch: Callable[[], None] | None = None
        self._held_back: dict[tuple[str, str | None], Mapping[str, Any]] = {}

    def hand_over(self, handlers: RequestHandlers, view: "ToolView") -> None:
        """Replace the handlers."""
        self._handlers = handlers
        self._era_selector.set_view(view)
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = handlers.watch(self._era_selector.legacy_client, self._notify)

    def receive(self, line: bytes) -> None:
        """Process one line. Never raises."""
        try:
            message = json.loads(line)
        except ValueError:
            self._refuse(None, WireError(PARSE_ERROR, "Parse error"))
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._refuse(_id_in(message), WireError(INVALID_REQUEST, "Invalid Request: one JSON-RPC 2.0 object a line"))
            return
        method = message.get("method")
        if method is None and ("result" in message or "error" in message):
            self._outgoing.resolve(message)
        elif not isinstance(method, str):
            self._refuse(_id_in(message), WireError(INVALID_REQUEST, "Invalid Request: `method` must be a string"))
        elif "id" in message:
            self._on_request(message["id"], method, message.get("params"))
        else:
            self._on_notification(method, message.get("params"))

    def refuse(self, problem: str) -> None:
        """Answer a line that cannot be read."""
        self._refuse(None, WireError(INVALID_REQUEST, problem))

    def _on_request(self, request_id: Any, method: str, params: Any) -> None:
        try:
            context = self._admit(request_id, method, params)
            if method == "initialize":
                self._reply(request_id, self._initialize(params or {}, context))
                return
        except WireError as error:
            self._refuse(request_id if _is_id(request_id) else None, error)
            return
        task = self._loop.create_task(self._serve(request_id, method, params or {}, context))
        self._running[request_id] = (task, context)

    def _admit(self, request_id: Any, method: str, params: Any) -> RequestContext:
        """The context of a request that may be served now. Raises WireError."""
        if not _is_id(request_id):
            raise WireError(INVALID_REQUEST, "Invalid Request: `id` must be a string or an integer")
        if request_id in self._running:
            raise WireError(INVALID_REQUEST, "Invalid Request: a request with this id is running")
        if len(self._running) >= MAX_RUNNING:
            raise WireError(INTERNAL_ERROR, f"limit of {MAX_RUNNING} concurrent requests reached")
        if params is not None and not isinstance(params, dict):
            raise WireError(INVALID_PARAMS, "Invalid params: `params` must be an object")
        client = self._era_selector.client_for(method, params or {}, self._handlers.methods)
        token = progress_token(params) if params else None
        return RequestContext(client, self, request_id=request_id, progress_token=token, fragments=True)

    def _initialize(self, params: Params, context: RequestContext) -> dict[str, Any]:
        if self._era_selector.era is not None:
            raise WireError(INVALID_REQUEST, "Invalid Request: `initialize` was sent before")
        result = self._handlers.initialize(params, context)
        self._era_selector.era = Era.LEGACY
        self._unwatch = self._handlers.watch(self._era_selector.legacy_client, self._notify)
        return result

    async def _serve(self, request_id: Id, method: str, params: Params, context: RequestContext) -> None:
        try:
            if method == "tools/call":
                result = await self._handlers.call(params, context)
            else:
                result = await self._handlers.answer(method, params, context)
        except WireError as error:
            self._end(request_id, context, error=error)
        except asyncio.CancelledError:
            self._end(request_id, context, error=WireError(CONNECTION_CLOSED, "Connection closed"))
        except Exception:
            traceback.print_exc(file=sys.stderr)
            self._end(request_id, context, error=WireError(INTERNAL_ERROR, "Internal error"))
        else:
            if self._sink.congested:
                await self._sink.clear()
            self._end(request_id, context, result)

    def _end(
        self,
        request_id: Id,
        context: RequestContext,
        result: dict[str, Any] | None = None,
        error: WireError | None = None,
    ) -> None:
        """Answer, unless the client has cancelled the request."""
        self._running.pop(request_id, None)
        if context.closed:
            return
        context.closed = True
        if error is not None:
            self._refuse(request_id, error)
        else:
            self._reply(request_id, result or {})

    def _on_notification(self, method: str, params: Any) -> None:
        """Notifications are never answered, even invalid ones."""
        if method != "notifications/cancelled":
            if self._era_selector.era is Era.LEGACY:
                self._handlers.on_notification(method)
            return
        if not isinstance(params, dict):
            return
        request_id: Any = params.get("requestId")
        running = self._running.get(request_id) if _is_id(request_id) else None
        if running is not None and not running[1].closed:
            task, context = running
            context.closed = True
            if not self._handlers.cancel(context):
                task.cancel()

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PeerError."""
        return await self._outgoing.send(method, params)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self._sink.congested:
            if method in LOSSY:
                return
            await self._sink.clear()
        self._post(notification(method, params))

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a change notification; while the client does not read, one of each kind is held back."""
        if self._sink.congested:
            self._held_back[method, params.get("uri")] = params
        else:
            self._post(notification(method, params or None))

    def resume(self) -> None:
        """The client reads again."""
        held_back, self._held_back = self._held_back, {}
        for (method, _), params in held_back.items():
            self._notify(method, params)

    async def finish(self, timeout: float) -> None:
        """The input has ended. Running requests get `timeout` seconds to complete and are then cancelled."""
        self._outgoing.close()
        if self._unwatch is not None:
            self._unwatch()
        if self._running:
            await asyncio.wait({task for task, _ in self._running.values()}, timeout=timeout)
        await self._cancel_running()
        await self._handlers.release(RequestContext(self._era_selector.legacy_client, self))

    async def _cancel_running(self) -> None:
        left = list(self._running.values())
        for task, context in left:
            if not self._handlers.cancel(context):
                task.cancel()
        if left:
            await asyncio.wait({task for task, _ in left}, timeout=10.0)

    def _reply(self, request_id: Id, result: dict[str, Any]) -> None:
        self._post(response(request_id, result))

    def _refuse(self, request_id: Id | None, error: WireError) -> None:
        self._post(error_response(request_id, error))

    def _post(self, message: Mapping[str, Any]) -> None:
        try:
            line = json.dumps(message)
        except TypeError:
            traceback.print_exc(file=sys.stderr)
            broken = WireError(INTERNAL_ERROR, "the result cannot be encoded as JSON")
            line = json.dumps(error_response(message.get("id"), broken))
        self._sink.send(line + b"\n")


def _is_id(request_id: Any) -> bool:
    if isinstance(request_id, str):
        return len(request_id) <= MAX_ID_LENGTH
    return isinstance(request_id, int) and not isinstance(request_id, bool)


def _id_in(message: Any) -> Id | None:
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if _is_id(request_id) else None
