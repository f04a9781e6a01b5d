"""How does one client talk with us over a wire that carries lines? JSON-RPC in both directions, in either era of MCP.

The first request that is served decides the era, and none of the other is served after it. Whatever a line holds, it is
answered by the rules of JSON-RPC or not at all: nothing that comes in can end the conversation.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolreeve.core import json
from toolreeve.core.call import LOCAL, Principal
from toolreeve.core.peer import Era
from toolreeve.serve.mcp.era_selection import EraSelector
from toolreeve.serve.mcp.outgoing_requests import OutgoingRequests
from toolreeve.serve.mcp.protocol import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Params,
    WireError,
    progress_token,
)
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView

MOST_RUNNING = 2048
LONGEST_ID = 1024
LOSSY = frozenset({"notifications/progress", "notifications/message"})
"""What a client that does not read is not told later."""

Id = str | int


class Answering(Protocol):
    """Whoever answers the requests: the desk, or a small server of its own."""

    def methods(self, era: Era) -> Any: ...

    def initialize(self, params: Params, caller: RequestContext) -> dict[str, Any]: ...

    async def answer(self, method: str, params: Params, caller: RequestContext) -> dict[str, Any]: ...

    async def call(self, params: Params, caller: RequestContext) -> dict[str, Any]: ...

    def cancel(self, caller: RequestContext) -> bool: ...

    def follow(self, client: ClientInfo, tell: Callable[[str, Mapping[str, Any]], None]) -> Callable[[], None]: ...

    def hear(self, method: str) -> None: ...

    async def leave(self, caller: RequestContext) -> None: ...


class Wire(Protocol):
    """Where lines go. `clear` returns when the client has read enough for more to be sent."""

    @property
    def congested(self) -> bool: ...

    def send(self, line: bytes) -> None: ...

    async def clear(self) -> None: ...


class McpConnection:
    """Begins without a view where it begins before the tools are there: `hand_over` brings it, with the desk."""

    def __init__(
        self, desk: Answering, wire: Wire, *, session: str, principal: Principal = LOCAL, view: "ToolView | None" = None
    ) -> None:
        self._desk, self._wire, self._loop = desk, wire, asyncio.get_running_loop()
        self._sender = EraSelector(session, principal, view)
        self._running: dict[Id, tuple[asyncio.Task[None], RequestContext]] = {}
        self._questions = OutgoingRequests(self._post)
        self._unfollow: Callable[[], None] | None = None
        self._held: dict[tuple[str, str | None], Mapping[str, Any]] = {}

    def hand_over(self, desk: Answering, view: "ToolView") -> None:
        """Another desk answers from now on."""
        self._desk = desk
        self._sender.show(view)
        if self._unfollow is not None:
            self._unfollow()
            self._unfollow = desk.follow(self._sender.connection, self._tell)

    def hear(self, line: bytes) -> None:
        """Take one line. Never raises."""
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
            self._questions.answered(message)
        elif not isinstance(method, str):
            self._refuse(_id_in(message), WireError(INVALID_REQUEST, "Invalid Request: `method` must be a string"))
        elif "id" in message:
            self._requested(message["id"], method, message.get("params"))
        else:
            self._notified(method, message.get("params"))

    def refuse(self, problem: str) -> None:
        """Answer what cannot even be read."""
        self._refuse(None, WireError(INVALID_REQUEST, problem))

    def _requested(self, number: Any, method: str, params: Any) -> None:
        try:
            caller = self._admitted(number, method, params)
            if method == "initialize":
                self._reply(number, self._initialized(params or {}, caller))
                return
        except WireError as error:
            self._refuse(number if _is_id(number) else None, error)
            return
        task = self._loop.create_task(self._serve(number, method, params or {}, caller))
        self._running[number] = (task, caller)

    def _admitted(self, number: Any, method: str, params: Any) -> RequestContext:
        """The sender of a request that may be served now. Raises WireError."""
        if not _is_id(number):
            raise WireError(INVALID_REQUEST, "Invalid Request: `id` must be a string or an integer")
        if number in self._running:
            raise WireError(INVALID_REQUEST, "Invalid Request: a request with this id is running")
        if len(self._running) >= MOST_RUNNING:
            raise WireError(INTERNAL_ERROR, f"too many requests at once; {MOST_RUNNING} are the most")
        if params is not None and not isinstance(params, dict):
            raise WireError(INVALID_PARAMS, "Invalid params: `params` must be an object")
        client = self._sender.of(method, params or {}, self._desk.methods)
        token = progress_token(params) if params else None
        return RequestContext(client, self, request_id=number, progress_token=token, fragments=True)

    def _initialized(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        if self._sender.era is not None:
            raise WireError(INVALID_REQUEST, "Invalid Request: `initialize` was sent before")
        result = self._desk.initialize(params, caller)
        self._sender.era = Era.LEGACY
        self._unfollow = self._desk.follow(self._sender.connection, self._tell)
        return result

    async def _serve(self, number: Id, method: str, params: Params, caller: RequestContext) -> None:
        try:
            if method == "tools/call":
                result = await self._desk.call(params, caller)
            else:
                result = await self._desk.answer(method, params, caller)
        except WireError as error:
            self._end(number, caller, error=error)
        except asyncio.CancelledError:
            self._end(number, caller, error=WireError(CONNECTION_CLOSED, "Connection closed"))
        except Exception:
            traceback.print_exc(file=sys.stderr)
            self._end(number, caller, error=WireError(INTERNAL_ERROR, "Internal error"))
        else:
            if self._wire.congested:
                await self._wire.clear()
            self._end(number, caller, result)

    def _end(
        self, number: Id, caller: RequestContext, result: dict[str, Any] | None = None, error: WireError | None = None
    ) -> None:
        """Answer, unless the client does not want to know any more."""
        self._running.pop(number, None)
        if caller.closed:
            return
        caller.closed = True
        if error is not None:
            self._refuse(number, error)
        else:
            self._reply(number, result or {})

    def _notified(self, method: str, params: Any) -> None:
        """A notification is never answered, whatever is wrong with it."""
        if method != "notifications/cancelled":
            if self._sender.era is Era.LEGACY:
                self._desk.hear(method)
            return
        if not isinstance(params, dict):
            return
        number: Any = params.get("requestId")
        running = self._running.get(number) if _is_id(number) else None
        if running is not None and not running[1].closed:
            task, caller = running
            caller.closed = True
            if not self._desk.cancel(caller):
                task.cancel()

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the client something. Raises PeerError."""
        return await self._questions.ask(method, params)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self._wire.congested:
            if method in LOSSY:
                return
            await self._wire.clear()
        self._post({"jsonrpc": "2.0", "method": method, "params": params})

    def _tell(self, method: str, params: Mapping[str, Any]) -> None:
        """News that keep: a client that does not read hears each of them once when it does."""
        if self._wire.congested:
            self._held[method, params.get("uri")] = params
        else:
            self._post({"jsonrpc": "2.0", "method": method, "params": params} if params else _bare(method))

    def resume(self) -> None:
        """The client reads again."""
        held, self._held = self._held, {}
        for (method, _), params in held.items():
            self._tell(method, params)

    async def finish(self, patience: float) -> None:
        """Nothing more will come in. What is running gets a moment to be answered, and is then ended."""
        self._questions.end()
        if self._unfollow is not None:
            self._unfollow()
        if self._running:
            await asyncio.wait({task for task, _ in self._running.values()}, timeout=patience)
        await self._cut_short()
        await self._desk.leave(RequestContext(self._sender.connection, self))

    async def _cut_short(self) -> None:
        left = list(self._running.values())
        for task, caller in left:
            if not self._desk.cancel(caller):
                task.cancel()
        if left:
            await asyncio.wait({task for task, _ in left}, timeout=10.0)

    def _reply(self, number: Id, result: dict[str, Any]) -> None:
        self._post({"jsonrpc": "2.0", "id": number, "result": result})

    def _refuse(self, number: Id | None, error: WireError) -> None:
        self._post({"jsonrpc": "2.0", "id": number, "error": error.to_dict()})

    def _post(self, message: Mapping[str, Any]) -> None:
        try:
            line = json.dumps(message)
        except TypeError:
            traceback.print_exc(file=sys.stderr)
            broken = WireError(INTERNAL_ERROR, "the answer cannot be written as JSON").to_dict()
            line = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": broken})
        self._wire.send(line + b"\n")


def _is_id(number: Any) -> bool:
    if isinstance(number, str):
        return len(number) <= LONGEST_ID
    return isinstance(number, int) and not isinstance(number, bool)


def _id_in(message: Any) -> Id | None:
    number = message.get("id") if isinstance(message, dict) else None
    return number if _is_id(number) else None


def _bare(method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method}
