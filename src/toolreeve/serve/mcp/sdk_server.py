"""How do requests that came through the SDK's server reach the desk, and the desk's questions their client?

The SDK keeps the transport: sessions, streams, headers, versions. What a request means is the desk's alone, and its
answer goes out as the desk gave it: the SDK's own shaping would drop every field that it has no model for.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, METHOD_NOT_FOUND, methods

from toolreeve.core.call import new_id
from toolreeve.core.peer import Era, PeerError
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
_CLIENT = "toolreeve.client"


class SdkChannel:
    """The way back to the client of one request: its own stream."""

    def __init__(self, context: Context) -> None:
        self._outbound = context.session._request_outbound

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self._outbound.send_raw_request(method, params)
        except MCPError as problem:
            raise PeerError(problem.error.code, problem.error.message, problem.error.data) from None

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self._outbound.notify(method, params)


class Switchboard:
    """Middleware of the SDK's server: hands every request to the desk, and lets nothing past it."""

    def __init__(self, desk: Handlers, view_of: ViewOf) -> None:
        self._desk, self._view_of = desk, view_of

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            if ctx.protocol_version not in MODERN_VERSIONS:
                self._desk.hear(ctx.method)
            return await call_next(ctx)
        _check(ctx)
        try:
            return await self._answer(ctx)
        except WireError as problem:
            told = writable(problem)
            raise MCPError(told.code, told.message, told.data) from None

    async def _answer(self, context: Context) -> dict[str, Any]:
        params = dict(context.params or {})
        caller = RequestContext(
            self._client(context, params),
            SdkChannel(context),
            request_id=context.request_id,
            progress_token=progress_token(params),
        )
        try:
            if context.method == "initialize":
                return self._desk.initialize(params, caller)
            answer = await self._desk.answer(context.method, params, caller)
            write(answer)
            return answer
        finally:
            caller.closed = True

    def _client(self, context: Context, params: Mapping[str, Any]) -> ClientInfo:
        request: Any = context.request
        credential: Credential = request.scope[CREDENTIAL]
        if context.protocol_version in MODERN_VERSIONS:
            return new_modern_client(credential, self._view_of(credential), read_envelope(params))
        connection = _connection(context)
        if context.method == "initialize" and _CLIENT not in connection.state:
            connection.state[_CLIENT] = self._welcome(credential, connection)
        client: ClientInfo | None = connection.state.get(_CLIENT)
        if client is None:
            raise WireError(INVALID_REQUEST, "the first request of a session must be `initialize`")
        return client

    def _welcome(self, credential: Credential, connection: Connection) -> ClientInfo:
        """A session of the legacy era begins: it hears what changes until it ends."""
        client = ClientInfo(
            view=self._view_of(credential),
            era=Era.LEGACY,
            session=new_id(),
            principal=credential.principal,
            credential=credential.id,
        )
        teller = NotificationQueue(connection.notify)
        connection.exit_stack.callback(self._desk.follow(client, teller.tell))
        connection.exit_stack.callback(teller.close)
        connection.exit_stack.push_async_callback(self._desk.leave, RequestContext(client, NOWHERE))
        return client


class _Nowhere:
    """The way back to a client that has gone."""

    async def request(self, _: str, __: Mapping[str, Any]) -> dict[str, Any]:
        raise PeerError(INVALID_REQUEST, "the client has gone")

    async def notify(self, _: str, __: Mapping[str, Any]) -> None:
        return


NOWHERE = _Nowhere()


def new_modern_client(credential: Credential, view: ToolView, envelope: Envelope) -> ClientInfo:
    """Who sent one request of the modern era.

    Nothing ties two such requests together but the credential: all that come with it are one session, whichever
    worker they come to.
    """
    return ClientInfo(
        view=view,
        era=Era.MODERN,
        session=f"mcp-{credential.id}",
        version=envelope.version,
        principal=credential.principal,
        credential=credential.id,
        capabilities=envelope.capabilities,
        info=envelope.info,
        log_level=envelope.log_level,
    )


def new_server(desk: Handlers, view_of: ViewOf, schema_of: Callable[[str], Mapping[str, Any] | None]) -> Server[Any]:
    """An SDK server that knows nothing of its own. `schema_of` is asked which arguments are repeated in headers."""
    server: Server[Any] = Server(desk.info["name"], version=desk.info["version"], get_tool_input_schema=schema_of)
    server.middleware = [Switchboard(desk, view_of)]
    return server


def _check(context: Context) -> None:
    """Raises MCPError for a method that its revision does not have, ValidationError for params that it does not."""
    try:
        if context.method in methods.SPEC_CLIENT_METHODS:
            methods.validate_client_request(context.method, context.protocol_version, context.params)
    except KeyError:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method) from None


def _connection(context: Context) -> Connection:
    """The SDK shows handlers a session for each request, and what these share only from inside."""
    return context.session._connection
