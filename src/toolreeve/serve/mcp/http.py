"""MCP over streamable HTTP: fast path first, then the SDK.

Access is checked before this is reached. A session belongs to the credential that opened it, and shows the tools that
this credential may see.
"""

import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Message, Receive, Scope, Send

from toolreeve.core.call import Role
from toolreeve.core.tool import ToolSpec
from toolreeve.core.toolset import EVERYTHING, Toolset, check_toolset, read_toolset
from toolreeve.serve.access import Header
from toolreeve.serve.exchange import CONNECTION, FastHandler
from toolreeve.serve.limits import Quota
from toolreeve.serve.mcp.client_session import find_session
from toolreeve.serve.mcp.fast_path import FastPath
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.input_required import configured_keys
from toolreeve.serve.mcp.request_state import Seal
from toolreeve.serve.mcp.responses import KEEPALIVE_SECONDS
from toolreeve.serve.mcp.sdk_server import CREDENTIAL, SESSION, new_server
from toolreeve.serve.mcp.sessions import SESSION_LIFETIME, Sessions
from toolreeve.serve.mcp.tool_view import ToolView
from toolreeve.serve.tokens import AccessScope, Credential

if TYPE_CHECKING:
    from toolreeve.config import Configuration

SESSION_IDLE_SECONDS = 30 * 60.0
MAX_BODY_BYTES = 4 * 1024 * 1024
RECONNECT_MS = 1000
MAX_VIEWS = 256

_current_view: ContextVar[ToolView] = ContextVar("viewing")


@dataclass(frozen=True, slots=True)
class NarrowedToolset(Toolset):
    """The tools that are in this toolset and in `within`."""

    within: Toolset = EVERYTHING

    def includes(self, spec: ToolSpec) -> bool:
        return self.within.includes(spec) and Toolset.includes(self, spec)

    def lists(self, spec: ToolSpec) -> bool:
        return bool(self.chosen) or self.within.lists(spec)


class ToolViews:
    """One view per credential: its own tools, never more than the door's. Those used last are kept."""

    def __init__(self, door: ToolView) -> None:
        self._door = door
        self._views: dict[str, ToolView] = {}

    def of(self, credential: Credential) -> ToolView:
        if (view := self._views.get(credential.id)) is None:
            own = read_toolset(credential.tools)
            door = self._door
            toolset = NarrowedToolset(own.chosen, own.removed, door.toolset)
            view = ToolView(door.registry, toolset=toolset, role=_role(credential), search=door.search)
            self._views[credential.id] = view
            if len(self._views) > MAX_VIEWS:
                del self._views[next(iter(self._views))]
        return view

    def check(self, credentials: Sequence[Credential], servers: Collection[str] = ()) -> None:
        """Raises ToolreeveError for a token's toolset word that matches nothing."""
        specs = [bound.spec for bound in self._door.registry.list()]
        for credential in credentials:
            check_toolset(read_toolset(credential.tools), specs, servers)


def _role(credential: Credential) -> Role:
    """Without the scope `call`, what a viewer may call."""
    return credential.principal.role if AccessScope.CALL in credential.scopes else Role.VIEWER


def new_session_seal(configuration: "Configuration") -> Seal | None:
    """For sessions that go on at another gateway; None where none shares the state and the key."""
    if not configuration.settings.state.url or not (keys := configured_keys(configuration)):
        return None
    return Seal(keys, now=time.time, lifetime=SESSION_LIFETIME)


class McpHttpDoor:
    """An ASGI application. The scope holds the credential of the request. `seal` is shared with the other gateways."""

    def __init__(
        self,
        handlers: Handlers,
        views: ToolViews,
        sessions: Quota,
        *,
        idle: float = SESSION_IDLE_SECONDS,
        keepalive: float = KEEPALIVE_SECONDS,
        seal: Seal | None = None,
    ) -> None:
        self._views = views
        self.sessions = Sessions(
            new_server(handlers, views.of, self._schema),
            retry_interval=RECONNECT_MS,
            session_idle_timeout=idle,
            max_request_body_size=MAX_BODY_BYTES,
            quota=sessions,
            seal=seal,
        )
        self._fast = FastPath(handlers, views.of, keepalive)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self.sessions.run():
            yield

    def find_fast_handler(self, headers: Sequence[Header], credential: Credential) -> FastHandler | None:
        return self._fast.find_fast_handler(headers, credential)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        credential: Credential = scope[CREDENTIAL]
        # The SDK ties a session to the client id of its user; it never sees the token.
        token = AccessToken(token="", client_id=credential.id, scopes=[])
        _current_view.set(self._views.of(credential))
        session = find_session(scope["headers"], scope[CONNECTION], credential)

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and not self.sessions.is_legacy(scope):
                message["headers"] = [*message["headers"], *session.headers]
            await send(message)

        scope = {**scope, "user": AuthenticatedUser(token), SESSION: session.id}
        await self.sessions.serve(scope, receive, send_with_cookie)

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool, if the current client sees it."""
        found = _current_view.get().find(name)
        return None if found is None else found.spec.input
