"""HTTP sessions of the legacy era, with quotas per owner and address.

A session belongs to the owner that opened it. When a quota is reached, the owner's own longest-idle session is closed;
sessions of others never are, and without an idle one the new session is refused.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from toolreeve.core.mcp import RpcError
from toolreeve.rpc.errors import INTERNAL_ERROR
from toolreeve.rpc.messages import error_response
from toolreeve.serve.access import AccessRefused, Header
from toolreeve.serve.exchange import CONNECTION
from toolreeve.serve.limits import RETRY, Quota
from toolreeve.serve.mcp.event_store import SessionEventStore
from toolreeve.serve.mcp.protocol import HANDSHAKE_VERSIONS

_SESSION = MCP_SESSION_ID_HEADER.encode()
_VERSION = b"mcp-protocol-version"
_LEGACY = {version.encode() for version in HANDSHAKE_VERSIONS}


@dataclass(slots=True, eq=False)
class LegacySession:
    """`id` is empty until the session is open; `user` is its owner as the SDK knows it."""

    owner: str
    address: str
    user: Any
    id: str = ""
    requests: int = 1
    used: float = field(default_factory=time.monotonic)


class Sessions(StreamableHTTPSessionManager):
    """Each session has its own event store: the SDK reads `event_store` once per session."""

    def __init__(self, server: Server[Any], quota: Quota, **options: Any) -> None:
        # The SDK counts a closed session until its last task has ended, hence the headroom.
        super().__init__(server, **options, max_sessions=2 * quota.total)
        self._quota = quota
        self._known: list[LegacySession] = []

    def __len__(self) -> int:
        return len([each for each in self._known if self._counts(each)])

    @property
    def event_store(self) -> EventStore | None:
        return SessionEventStore()

    @event_store.setter
    def event_store(self, _: EventStore | None) -> None:
        """Ignores the assignment in the SDK's constructor."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.is_legacy(scope):
            await self.asgi_app(scope, receive, send)
            return
        shown = _header(scope, _SESSION)
        if shown is None:
            await self._open(scope, receive, send)
            return
        session = next((each for each in self._known if each.id.encode() == shown), None)
        await self._use(session, scope, receive, send)

    def is_legacy(self, scope: Scope) -> bool:
        version = _header(scope, _VERSION)
        return version is None or version in _LEGACY

    async def _use(self, session: LegacySession | None, scope: Scope, receive: Receive, send: Send) -> None:
        """The SDK checks that the request is the owner's."""
        if session is None:
            await self.asgi_app(scope, receive, send)
            return
        session.requests += 1
        try:
            await self.asgi_app(scope, receive, send)
        finally:
            session.requests -= 1
            session.used = time.monotonic()

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = scope[CONNECTION]
        session = LegacySession(connection.owner, connection.address, scope["user"])
        try:
            outdated = self._make_room(session)
        except AccessRefused as refusal:
            await _refused(refusal)(scope, receive, send)
            return
        self._known.append(session)
        for each in outdated:
            await self._end(each)

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                session.id = next((value.decode() for name, value in message["headers"] if name == _SESSION), "")
            await send(message)

        try:
            await self.asgi_app(scope, receive, note)
        finally:
            session.requests -= 1
            session.used = time.monotonic()
            if not session.id and session in self._known:
                self._known.remove(session)

    def _counts(self, session: LegacySession) -> bool:
        """The SDK also closes sessions by itself, without notice. One that does not tell which are open: all count,
        and the owner's oldest idle one makes room."""
        still_open = getattr(self, "_server_instances", None)
        return not session.id or still_open is None or session.id in still_open

    def _make_room(self, new: LegacySession) -> Sequence[LegacySession]:
        """The sessions to close for the new one. Raises AccessRefused."""
        kept = [each for each in self._known if self._counts(each)]
        outdated = []
        for suffix, most, counts in (
            ("_per_token", self._quota.per_token, lambda each: each.owner == new.owner),
            ("_per_address", self._quota.per_address, lambda each: each.address == new.address),
            ("", self._quota.total, lambda _: True),
        ):
            counted = [each for each in kept if counts(each)]
            if len(counted) < most:
                continue
            idle = [each for each in counted if each.owner == new.owner and each.requests == 0]
            if not idle:
                reason = f"too many sessions (serve.{self._quota.setting}{suffix} = {most}), and none of yours is idle"
                raise AccessRefused(429 if suffix else 503, reason, [RETRY])
            outdated.append(min(idle, key=lambda each: each.used))
            kept.remove(outdated[-1])
        self._known = kept
        return outdated

    async def _end(self, session: LegacySession) -> None:
        """Close the session as its owner would."""
        headers: list[Header] = [(_SESSION, session.id.encode())]
        scope: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/",
            "query_string": b"",
            "headers": headers,
            "user": session.user,
        }
        await self.asgi_app(scope, _nothing_more, _unheard)


def _header(scope: Scope, sought: bytes) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == sought), None)


def _refused(refusal: AccessRefused) -> JSONResponse:
    headers = {name.decode(): value.decode() for name, value in refusal.headers}
    return JSONResponse(error_response(None, RpcError(INTERNAL_ERROR, refusal.reason)), refusal.status, headers)


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_: Message) -> None:
    return
