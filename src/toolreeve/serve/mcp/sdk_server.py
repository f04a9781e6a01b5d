"""Adapter between the SDK's server and the request handlers.

The SDK owns the transport: sessions, streams, headers, versions. The handlers alone interpret requests, and their
results are sent unchanged: the SDK's models would drop every field that they do not know.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, METHOD_NOT_FOUND, methods

from toolreeve.core.call import new_id
from toolreeve.core.mcp import Era, PeerError
from toolreeve.serve.mcp.client_session import legacy_session
from toolreeve.serve.mcp.encoding import writable, write
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.notification_queue import NotificationQueue
from toolreeve.serve.mcp.protocol import MODERN_VERSIONS, Envelope, WireError, progress_token, read_envelope
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext
from toolreeve.serve.mcp.tool_view import ToolView
from toolreeve.serve.tokens import Credential

Context = ServerRequestContext[Any, Any]
ViewOf = Callable[[Credential], ToolView]

CREDENTIAL = "toolreeve.credential"
SESSION = "toolreeve.session"
_CLIENT = "toolreeve.client"


class SdkChannel:
    """The channel to the client of one request: its own stream."""

    def __init__(self, ctx: Context) -> None:
        self._outbound = getattr(ctx.session, "_request_outbound", None)  # not public in the SDK

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._outbound is None:
            raise PeerError(METHOD_NOT_FOUND, "the installed version of mcp offers no way to ask the client")
        try:
            return dict(await self._outbound.send_raw_request(method, params))
        except MCPError as problem:
            raise PeerError(problem.error.code, problem.error.message, problem.error.data) from None

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self._outbound is not None:
            await self._outbound.notify(method, params)


class HandlersMiddleware:
    """SDK middleware that passes every request to the handlers, and none to the SDK's own."""

    def __init__(self, handlers: Handlers, view_of: ViewOf) -> None:
        self._handlers = handlers
        self._view_of = view_of

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            if ctx.protocol_version not in MODERN_VERSIONS:
                self._handlers.on_notification(ctx.method)
            return await call_next(ctx)
        _check(ctx)
        try:
            return await self._answer(ctx)
        except WireError as problem:
            error = writable(problem)
            raise MCPError(error.code, error.message, error.data) from None

    async def _answer(self, ctx: Context) -> dict[str, Any]:
        params = dict(ctx.params or {})
        context = RequestContext(
            self._client(ctx, params),
            SdkChannel(ctx),
            request_id=ctx.request_id,
            progress_token=progress_token(params),
        )
        try:
            if ctx.method == "initialize":
                return self._handlers.initialize(params, context)
            answer = await self._handlers.answer(ctx.method, params, context)
            write(answer)
            return answer
        finally:
            context.closed = True

    def _client(self, ctx: Context, params: Mapping[str, Any]) -> ClientInfo:
        request: Any = ctx.request
        credential: Credential = request.scope[CREDENTIAL]
        if ctx.protocol_version in MODERN_VERSIONS:
            view = self._view_of(credential)
            return new_modern_client(credential, view, read_envelope(params), request.scope[SESSION])
        connection = _connection(ctx)
        if ctx.method == "initialize" and _CLIENT not in connection.state:
            connection.state[_CLIENT] = self._new_session(credential, connection)
        client: ClientInfo | None = connection.state.get(_CLIENT)
        if client is None:
            raise WireError(INVALID_REQUEST, "the first request of a session must be `initialize`")
        return client

    def _new_session(self, credential: Credential, connection: Connection) -> ClientInfo:
        """Start a legacy session, which gets change notifications until it ends."""
        client = ClientInfo(
            view=self._view_of(credential),
            era=Era.LEGACY,
            session=legacy_session(connection.session_id or new_id(), credential),
            principal=credential.principal,
            credential=credential.id,
        )
        queue = NotificationQueue(connection.notify)
        connection.exit_stack.callback(self._handlers.watch(client, queue.put))
        connection.exit_stack.callback(queue.close)
        connection.exit_stack.push_async_callback(self._handlers.release, RequestContext(client, NO_CLIENT))
        return client


class _NoClient:
    """The channel to a client that has disconnected."""

    async def request(self, _: str, __: Mapping[str, Any]) -> dict[str, Any]:
        raise PeerError(INVALID_REQUEST, "the client has disconnected")

    async def notify(self, _: str, __: Mapping[str, Any]) -> None:
        return


NO_CLIENT = _NoClient()


def new_modern_client(credential: Credential, view: ToolView, envelope: Envelope, session: str) -> ClientInfo:
    """The client of one modern request."""
    return ClientInfo(
        view=view,
        era=Era.MODERN,
        session=session,
        version=envelope.version,
        principal=credential.principal,
        credential=credential.id,
        capabilities=envelope.capabilities,
        info=envelope.info,
        log_level=envelope.log_level,
    )


def new_server(
    handlers: Handlers, view_of: ViewOf, schema_of: Callable[[str], Mapping[str, Any] | None]
) -> Server[Any]:
    """An SDK server without handlers of its own. `schema_of` tells which arguments are repeated in headers."""
    server: Server[Any] = Server(
        handlers.info["name"], version=handlers.info["version"], get_tool_input_schema=schema_of
    )
    server.middleware = [HandlersMiddleware(handlers, view_of)]
    return server


def _check(ctx: Context) -> None:
    """Raises MCPError for a method that the revision does not have, ValidationError for invalid params."""
    try:
        if ctx.method in methods.SPEC_CLIENT_METHODS:
            methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    except KeyError:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method) from None


def _connection(ctx: Context) -> Connection:
    """The connection that the requests of one session share; the SDK has no public accessor."""
    return ctx.session._connection
