"""Where is MCP spoken over HTTP? One endpoint for both eras: plain calls the short way, all else through the SDK.

Who may come in is decided before this is reached. A session belongs to the credential that opened it, and shows the
tools that this credential may see.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Receive, Scope, Send

from toolreeve.core.tool import ToolSpec
from toolreeve.serve.access import Header
from toolreeve.serve.exchange import Take
from toolreeve.serve.limits import Quota
from toolreeve.serve.mcp.fast_path import FastPath
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.responses import SILENCE
from toolreeve.serve.mcp.sdk_server import CREDENTIAL, new_server
from toolreeve.serve.mcp.sessions import Sessions
from toolreeve.serve.mcp.tool_view import ToolView
from toolreeve.serve.mcp.toolset import EVERYTHING, Toolset, check_patterns, read_patterns
from toolreeve.serve.tokens import Credential

IDLE = 30 * 60.0
LARGEST = 4 * 1024 * 1024
RECONNECT_MS = 1000

_viewing: ContextVar[ToolView] = ContextVar("viewing")


@dataclass(frozen=True, slots=True)
class Narrowed(Toolset):
    """What fits here and in the wider toolset as well."""

    within: Toolset = EVERYTHING

    def fit(self, spec: ToolSpec) -> bool:
        return self.within.fit(spec) and Toolset.fit(self, spec)


class Views:
    """One view for each credential: its own tools, but never more than the door's."""

    def __init__(self, door: ToolView) -> None:
        self._door = door
        self._made: dict[str, ToolView] = {}

    def of(self, credential: Credential) -> ToolView:
        if (view := self._made.get(credential.id)) is None:
            own, door = read_patterns(credential.tools), self._door
            patterns = Narrowed(own.chosen, own.removed, door.patterns)
            view = ToolView(door.registry, patterns=patterns, role=credential.principal.role, search=door.search)
            self._made[credential.id] = view
        return view

    def check(self, credentials: Sequence[Credential], servers: Collection[str] = ()) -> None:
        """Raises ToolreeveError for a token's word that chooses nothing."""
        specs = [bound.spec for bound in self._door.registry.list()]
        for credential in credentials:
            check_patterns(read_patterns(credential.tools), specs, servers)


class HttpDoor:
    """An ASGI application. Requests come with their credential in the scope."""

    def __init__(
        self,
        desk: Handlers,
        views: Views,
        sessions: Quota,
        *,
        idle: float = IDLE,
        silence: float = SILENCE,
    ) -> None:
        self._views = views
        self.sessions = Sessions(
            new_server(desk, views.of, self._schema),
            retry_interval=RECONNECT_MS,
            session_idle_timeout=idle,
            max_request_body_size=LARGEST,
            quota=sessions,
        )
        self._fast = FastPath(desk, views.of, silence)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self.sessions.run():
            yield

    def recognise(self, headers: Sequence[Header], credential: Credential) -> Take | None:
        return self._fast.recognise(headers, credential)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The long way, which every request could take."""
        credential: Credential = scope[CREDENTIAL]
        # The SDK ties a session to the client id of its user; it never sees the token.
        token = AccessToken(token="", client_id=credential.id, scopes=[])
        _viewing.set(self._views.of(credential))
        await self.sessions.serve({**scope, "user": AuthenticatedUser(token)}, receive, send)

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool, for the client whose request is at hand."""
        found = _viewing.get().find(name)
        return None if found is None else found.spec.input
