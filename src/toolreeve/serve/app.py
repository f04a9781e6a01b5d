"""The HTTP application: a router of doors, behind access control and CORS.

No route or mount is reachable without passing access control; the limits of connections are before it, in the protocol.
An unknown path is answered with 404.
"""

import logging
import signal
import socket
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, runtime_checkable

from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Receive, Scope, Send
from uvicorn import Config, Server

from toolreeve.core.errors import ConfigError, ErrorCode
from toolreeve.serve.access import AccessControl, AccessRefused, Header, is_loopback
from toolreeve.serve.api.problems import Problem, not_found, problem_response
from toolreeve.serve.api.router import PREFIX
from toolreeve.serve.console_files import is_page
from toolreeve.serve.cors import answer_preflight, is_preflight, with_cors_headers
from toolreeve.serve.exchange import CONNECTION, FastHandler
from toolreeve.serve.limits import ServerLimits, Usage
from toolreeve.serve.mcp.sdk_server import CREDENTIAL
from toolreeve.serve.peer_uid import find_allowed_uid
from toolreeve.serve.protocol import HttpProtocol, SharedServerState
from toolreeve.serve.tokens import AccessScope, Credential, Tokens
from toolreeve.serve.websocket import WebSocketProtocol

SHUTDOWN_GRACE = 5.0
"""Seconds that running requests get to complete when the server stops."""
MCP = "/mcp"
WEBSOCKETS = (f"{PREFIX}/events/ws", "/streaming/websocket")


@runtime_checkable
class FastDoor(Protocol):
    """An ASGI application that answers some requests on a fast path, as the endpoint of a route."""

    def find_fast_handler(self, headers: Sequence[Header], credential: Credential) -> FastHandler | None: ...


class Application:
    """The doors find the credential of a request in its scope, under `CREDENTIAL`. `public` routes hold no data: they
    are reached without one, by a Host and from an Origin that are ours.

    `stop` is called when the server stops accepting requests, so that open subscriptions end.
    """

    def __init__(
        self,
        access: AccessControl,
        routes: Sequence[BaseRoute],
        stop: Callable[[], None],
        public: Sequence[BaseRoute] = (),
    ) -> None:
        self._access = access
        self._public = Router(public, redirect_slashes=False)
        self._router = Router(routes, redirect_slashes=False, default=_not_found)
        self._fast_doors = _fast_doors(routes)
        self.stop = stop

    @property
    def requires_token(self) -> bool:
        return bool(self._access.tokens)

    @property
    def tokens(self) -> Tokens:
        return self._access.tokens

    def access_version(self) -> int:
        """Another one whenever a head that was admitted may have to be refused."""
        return self._access.tokens.version

    def find_fast_handler(
        self, target: bytes, headers: Sequence[Header], connection: HttpProtocol
    ) -> FastHandler | None:
        """The fast path for a POST; None for a request that is not plain, and for one that is refused."""
        door = self._fast_doors.get(target)
        if door is None or any(name == b"origin" for name, _ in headers):
            return None
        try:
            return door.find_fast_handler(headers, _check_scopes(self._admit(headers, connection)))
        except AccessRefused:
            return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._serve_websocket(scope, receive, send)
            return
        try:
            if (allowed_origin := self._access.allowed_origin(scope["headers"])) is not None:
                if is_preflight(scope):
                    await answer_preflight(allowed_origin, send)
                    return
                send = with_cors_headers(allowed_origin, send)
            if self._is_public(scope):
                self._access.check(scope["headers"])
                await self._public(scope, receive, send)
                return
            cookies = scope["path"].startswith(f"{PREFIX}/")
            scope[CREDENTIAL] = self._admit(scope["headers"], scope[CONNECTION], cookies=cookies)
            scope[CONNECTION].serving = scope[CREDENTIAL].id
            if scope["path"] == MCP:
                _check_scopes(scope[CREDENTIAL])
        except AccessRefused as refusal:
            headers = {name.decode(): value.decode() for name, value in refusal.headers}
            await self._refusal(refusal, scope, headers)(scope, receive, send)
            return
        await self._router(scope, receive, send)

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A browser's cookie counts only together with its Origin, which is ours: no other page can connect."""
        scope["headers"] = [(name.lower(), value) for name, value in scope["headers"]]
        connection: WebSocketProtocol = scope["state"][CONNECTION]
        try:
            credential = self._admit(scope["headers"], connection, cookies=True)
            connection.serving = credential.id
            if credential.csrf and not any(name == b"origin" for name, _ in scope["headers"]):
                raise AccessRefused(403, "a browser's connection needs its Origin")
        except AccessRefused as refusal:
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.reason})
            return
        scope[CREDENTIAL] = credential
        await self._router(scope, receive, send)

    def _is_public(self, scope: Scope) -> bool:
        if any(route.matches(scope)[0] is Match.FULL for route in self._public.routes[:-1]):
            return True
        return bool(self._public.routes) and scope["method"] in ("GET", "HEAD") and is_page(scope["path"])

    def _refusal(self, refusal: AccessRefused, scope: Scope, headers: Mapping[str, str]) -> Response:
        if not scope["path"].startswith(f"{PREFIX}/"):
            return PlainTextResponse(refusal.reason, refusal.status, headers)
        return problem_response(Problem(refusal.status, refusal.reason, code=ErrorCode.PERMISSION), headers)

    def _admit(
        self, headers: Sequence[Header], connection: HttpProtocol | WebSocketProtocol, *, cookies: bool = False
    ) -> Credential:
        """Raises AccessRefused."""
        credential = self._access.admit(headers, cookies=cookies)
        if credential.id:
            connection.identify(credential.id)
        return credential


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"].startswith(f"{PREFIX}/"):
        response = problem_response(not_found(f"there is no {scope['path']!r:.200}"))
    else:
        response = PlainTextResponse(f"Not Found: MCP is served at {MCP}", 404)
    await response(scope, receive, send)


def _check_scopes(credential: Credential) -> Credential:
    """Raises AccessRefused for a credential that is not for tools."""
    if not credential.scopes & {AccessScope.READ, AccessScope.CALL}:
        raise AccessRefused(403, "the token has neither the scope read nor call")
    return credential


def _fast_doors(routes: Sequence[BaseRoute]) -> Mapping[bytes, FastDoor]:
    doors: dict[bytes, FastDoor] = {}
    for route in routes:
        if isinstance(route, Route) and isinstance(route.endpoint, FastDoor):
            doors[route.path.encode()] = route.endpoint
    return doors


class HttpServer(Server):
    """Stops at SIGTERM and SIGINT. Uvicorn would raise them again afterwards, before the runtime has shut down."""

    def __init__(self, application: Application, limits: ServerLimits, *, grace: float = SHUTDOWN_GRACE) -> None:
        self._application = application
        entrance = SharedServerState(
            usage=Usage(limits),
            find_fast_handler=application.find_fast_handler,
            access_version=application.access_version,
            admit=None if application.requires_token else find_allowed_uid,
            websockets=[path.encode() for path in WEBSOCKETS],
        )
        super().__init__(
            Config(
                application,
                http=partial(HttpProtocol, entrance),  # type: ignore[arg-type]  # any factory will do
                lifespan="off",
                log_config=None,
                access_log=False,
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=grace,  # type: ignore[arg-type]  # fractions work
            )
        )
        application.tokens.changed.append(self._end_revoked)

    def _end_revoked(self) -> None:
        """Close what is being answered in the name of a credential that is no longer accepted, on every door."""
        valid = self._application.tokens.valid_ids()
        for each in list(self.server_state.connections):
            if isinstance(each, HttpProtocol | WebSocketProtocol) and each.serving not in {None, *valid}:
                each.end_revoked()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def main_loop(self) -> None:
        await super().main_loop()
        self._application.stop()
        # Streams that are cut from now on are expected.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


def check_exposure(host: str, tokens: Tokens) -> None:
    """Raises ConfigError if other machines could connect without a token."""
    if not tokens and not is_loopback(host):
        raise ConfigError(
            f"{host} is reachable from other machines, and no token is configured",
            source="serve.host",
            fix="listen on 127.0.0.1, or add to toolreeve.toml: "
            'serve.tokens = [{token = "${secret:TOOLREEVE_TOKEN}", user = "me", role = "operator"}]',
        )


def bind(host: str, port: int) -> socket.socket:
    """Raises ConfigError if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host.strip("[]"), port), family=family, backlog=1024)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit it
        return listener
    except OSError as problem:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {problem.strerror or problem}",
            source="serve.port",
            fix="choose another with --port (0: any free port)",
        ) from None
