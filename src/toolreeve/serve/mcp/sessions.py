"""HTTP sessions of the legacy era, with quotas per owner and address.

A session belongs to the owner that opened it. When a quota is reached, the owner's own longest-idle session is closed;
sessions of others never are, and without an idle one the new session is refused. With a seal, the id of a session holds
its handshake, sealed for its owner: another gateway with the same key repeats it, and the session goes on there.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from toolreeve.core import json
from toolreeve.core.mcp import RpcError
from toolreeve.rpc.errors import INTERNAL_ERROR
from toolreeve.rpc.messages import error_response
from toolreeve.serve.access import AccessRefused, Header
from toolreeve.serve.exchange import CONNECTION
from toolreeve.serve.limits import RETRY, Quota
from toolreeve.serve.mcp.event_store import SessionEventStore
from toolreeve.serve.mcp.protocol import HANDSHAKE_VERSIONS
from toolreeve.serve.mcp.request_state import BadState, RequestState, Seal

SESSION_LIFETIME = 24 * 3600.0
"""Seconds after its handshake in which a session can go on at another gateway."""
LONGEST_ID = 4_000
MOST_ENDED = 10_000
_HANDSHAKE = "handshake"
_new_session_id: ContextVar[str] = ContextVar("new session id", default="")
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
    """Each session has its own event store: the SDK reads `event_store` once per session. Without `seal`, sessions end
    with this process."""

    def __init__(self, server: Server[Any], quota: Quota, seal: Seal | None = None, **options: Any) -> None:
        # The SDK counts a closed session until its last task has ended, hence the headroom.
        super().__init__(server, **options, max_sessions=2 * quota.total)
        self._quota = quota
        self._seal = seal
        self._known: list[LegacySession] = []
        self._ended: dict[str, None] = {}
        self._resuming = asyncio.Lock()

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
        try:
            if shown is None:
                await self._open(scope, receive, send)
            else:
                await self._use(await self._find(shown.decode("latin-1"), scope), scope, receive, send)
        except AccessRefused as refusal:
            await _refused(refusal)(scope, receive, send)

    def is_legacy(self, scope: Scope) -> bool:
        version = _header(scope, _VERSION)
        return version is None or version in _LEGACY

    async def _find(self, number: str, scope: Scope) -> LegacySession | None:
        """The session; one of another gateway is opened here. Raises AccessRefused if there is no room for it."""
        found = self._known_as(number)
        if found is not None or self._seal is None or number in self._ended:
            return found
        async with self._resuming:
            return self._known_as(number) or await self._resume(self._seal, number, scope)

    def _known_as(self, number: str) -> LegacySession | None:
        return next((each for each in self._known if each.id == number and self._counts(each)), None)

    async def _resume(self, seal: Seal, number: str, scope: Scope) -> LegacySession | None:
        try:
            handshake = seal.open(number, holder=_owner(scope), request=_HANDSHAKE).inner
        except BadState:
            return None
        self._known = [each for each in self._known if each.id != number]  # it may have been open here before
        opening: Scope = {**scope, "method": "POST", "headers": [*_JSON, *_without(scope["headers"])]}
        await self._open(opening, _body(handshake), _unheard, number)
        if (session := self._known_as(number)) is not None:
            ready: Scope = {**opening, "headers": [*opening["headers"], (_SESSION, number.encode())]}
            await self._use(session, ready, _body(_INITIALIZED), _unheard)
        return session

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
        if scope["method"] == "DELETE" and not self._counts(session):
            self._ended[session.id] = None
            if len(self._ended) > MOST_ENDED:
                del self._ended[next(iter(self._ended))]

    async def _open(self, scope: Scope, receive: Receive, send: Send, number: str = "") -> None:
        """`number` is the id of a session that another gateway opened. Raises AccessRefused."""
        connection = scope[CONNECTION]
        session = LegacySession(connection.owner, connection.address, scope["user"])
        outdated = self._make_room(session)
        self._known.append(session)
        for each in outdated:
            await self._end(each)

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                session.id = next((value.decode() for name, value in message["headers"] if name == _SESSION), "")
            await send(message)

        try:
            if self._seal is not None and not number:
                content = await _read(receive, self.max_request_body_size)
                number = self._sealed_id(self._seal, content, scope)
                receive = _body(content, receive)
            _new_session_id.set(number)
            await self.asgi_app(scope, receive, note)
        finally:
            session.requests -= 1
            session.used = time.monotonic()
            if not session.id and session in self._known:
                self._known.remove(session)

    def _sealed_id(self, seal: Seal, content: bytes, scope: Scope) -> str:
        """Empty for what is no handshake, or too long for a header."""
        try:
            message = json.loads(content)
        except ValueError:
            return ""
        if not isinstance(message, Mapping) or message.get("method") != "initialize":
            return ""
        number = seal.close(RequestState(holder=_owner(scope), request=_HANDSHAKE, inner=content.decode()))
        return number if len(number) <= LONGEST_ID else ""

    def _admit_session(self, requestor: Any) -> Any:
        """The SDK's, under our own id."""
        transport = super()._admit_session(requestor)
        if transport is not None and (number := _new_session_id.get()):
            given = transport.mcp_session_id or ""
            registries: Sequence[dict[str, Any]] = (self._server_instances, self._session_owners)
            for registered in registries:
                if given in registered:
                    registered[number] = registered.pop(given)
            transport.mcp_session_id = number
        return transport

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
        await self.asgi_app(scope, _body(None), _unheard)


_JSON: Sequence[Header] = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
)
_INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'


def _owner(scope: Scope) -> str:
    return str(scope["user"].access_token.client_id)


def _without(headers: Sequence[Header]) -> list[Header]:
    """What a request of its own must not have of another's headers."""
    left_out = {_SESSION, b"last-event-id", b"content-length", b"transfer-encoding", *(name for name, _ in _JSON)}
    return [header for header in headers if header[0] not in left_out]


async def _read(receive: Receive, most: int) -> bytes:
    """The body; of one that is too long, as much as shows that."""
    content = b""
    while len(content) <= most:
        message = await receive()
        content += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return content


def _body(content: bytes | str | None, then: Receive | None = None) -> Receive:
    """Receives this body, and then what `then` does; without it, the client stays and says no more."""
    left = [content.encode() if isinstance(content, str) else content or b""]

    async def receive() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        if then is not None:
            return await then()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    return receive


def _header(scope: Scope, sought: bytes) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == sought), None)


def _refused(refusal: AccessRefused) -> JSONResponse:
    headers = {name.decode(): value.decode() for name, value in refusal.headers}
    return JSONResponse(error_response(None, RpcError(INTERNAL_ERROR, refusal.reason)), refusal.status, headers)


async def _unheard(_: Message) -> None:
    return
