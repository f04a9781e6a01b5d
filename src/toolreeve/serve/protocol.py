"""The HTTP/1.1 server protocol: ordering, deadlines and quotas of a connection.

The requests of one connection are answered in order, one at a time, and none is started while the socket does not
accept the earlier responses. A request that cannot be parsed is refused in its turn and ends the connection: nothing
behind it is parsed as a request. Everything buffered for a client is bounded in bytes and in time.

It implements the interface that uvicorn's server expects of a protocol class, and uses none of uvicorn's protocols.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Scope

from toolreeve.serve.access import AccessRefused, Header
from toolreeve.serve.deadlines import ConnectionDeadline
from toolreeve.serve.exchange import CONNECTION, FastHandler, HttpExchange, new_scope
from toolreeve.serve.limits import Share, Usage, count, peer_address
from toolreeve.serve.parser import RequestParser
from toolreeve.serve.request_queue import LARGEST, PIECE, RequestQueue
from toolreeve.serve.sender import ResponseSender
from toolreeve.serve.websocket import WebSocketProtocol, is_upgrade

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

MAX_LINGERING = 8 * 1024 * 1024
"""Bytes that a lingering close reads and discards, so that the client can read the last response."""
_TEXT = b"text/plain; charset=utf-8"

_logger = logging.getLogger(__name__)
_FOREIGN_USER = PlainTextResponse(
    "without a token, only processes of the serving user may connect; configure serve.tokens", status_code=403
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServerState:
    """What the connections of one server share.

    `find_fast_handler` returns the fast path for the target and headers of a POST; it is asked again whenever
    `access_version` returns another number. `admit` returns the uid of the peer process, None if it is not allowed; it
    is used if no token is required. `websockets` are the paths of WebSockets.
    """

    usage: Usage
    find_fast_handler: Callable[[bytes, Sequence[Header], "HttpProtocol"], FastHandler | None]
    admit: Callable[[socket.socket], int | None] | None = None
    websockets: Sequence[bytes] = ()
    access_version: Callable[[], int] = int


class HttpProtocol(asyncio.Protocol):
    """One connection. `_closing` says that its last response is written, `_refusal` what that response will be."""

    head_seconds = 10.0
    body_seconds = 60.0
    reading_seconds = 60.0
    linger_seconds = 5.0

    def __init__(
        self,
        shared: SharedServerState,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._shared = shared
        self._server = server_state
        self._config = config
        self._app_state = app_state
        self._app: ASGIApp = config.loaded_app
        self._idle_seconds = float(config.timeout_keep_alive)
        self._loop = _loop or asyncio.get_running_loop()
        self._deadline = ConnectionDeadline(self._loop, self._expired)
        self._refusal: AccessRefused | None = None
        self._last_head: tuple[int, bytes, list[Header]] | None = None
        self._last_fast_handler: FastHandler | None = None
        self._half_closed = False
        self._closing = False
        self._stopping = False
        self._lingered = 0
        self._answered = 0
        self.address = ""
        self.owner = ""
        self.serving: str | None = None
        """The id of the credential whose request is being answered."""
        self.session_key = b""
        self.held = 0
        self.shares: list[Share] = []

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # Bytes sent before a disconnect are still read: no failure here may leave the real application in place.
        app, self._app = self._app, _FOREIGN_USER
        self._transport = transport
        self._queue = RequestQueue(self, transport)
        self._sender = ResponseSender(transport, self._loop, self.reading_seconds)
        self._server.connections.add(self)  # type: ignore[arg-type]  # the server only asks them to shut down
        self._client: Any = transport.get_extra_info("peername")
        self.address = peer_address(self._client[0]) if self._client else ""
        self._deadline.expect("first head", self.head_seconds)
        try:
            self._shared.usage.enter(self, self.address)
            if self._is_admitted():
                self._app = app
        except AccessRefused as refusal:
            self._refusal = refusal
            self._deadline.expect("refused request", self.linger_seconds)

    def _is_admitted(self) -> bool:
        """Raises AccessRefused."""
        if self._shared.admit is None:
            return True
        user = self._shared.admit(self._transport.get_extra_info("socket"))
        if user is None:
            return False
        self.identify(f"user {user}")
        return True

    def identify(self, owner: str) -> None:
        """Count the connection for its owner. Raises AccessRefused."""
        if owner != self.owner:
            self._shared.usage.identify(self, owner)
            self.owner = owner

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._server.connections.discard(self)
        self._shared.usage.leave(self)
        self._closing = True
        self._deadline.cancel()
        self._sender.stop()
        if self._queue.current is not None:
            self._queue.current.disconnect()
        self._queue.waiting.clear()

    def eof_received(self) -> bool:
        """Half-close: the client can still read, so its requests are answered."""
        if self._closing:
            return False
        self._half_closed = True
        if self._queue.has_begun_request:
            self.refuse(AccessRefused(400, "the request is incomplete"))
        if self._queue.current is None and not self._queue.waiting:
            return False
        self._sender.probe(lambda: self._queue.current)
        return True

    def shutdown(self) -> None:
        """The server stops: received requests are answered, and nothing else."""
        self._stopping = True
        last = self._queue.waiting[-1] if self._queue.waiting else self._queue.current
        if last is None or self._closing:
            self._transport.close()
        else:
            last.keep_alive = False

    # Requests

    def data_received(self, data: bytes) -> None:
        if not self._answered and self._shared.websockets and self._upgrades(data):
            return
        if self._refusal is not None or self._closing:
            self._discard(len(data))
            return
        self._queue.feed(data)
        self._expect_next()
        arriving = self._queue.arriving
        if self.held or len(data) > PIECE or (arriving is not None and arriving.received > LARGEST):
            self._check_buffered()

    def _upgrades(self, data: bytes) -> bool:
        """Hand a connection over whose first request opens a WebSocket."""
        idle = self._queue.current is None and not self._queue.waiting and not self._queue.has_begun_request
        if not idle or self._refusal is not None or self._closing or self._app is _FOREIGN_USER:
            return False
        if not is_upgrade(data, self._shared.websockets):
            return False
        self._deadline.clear()
        handed = WebSocketProtocol(self._config, self._server, self._app_state, self)
        handed.connection_made(self._transport)
        self._transport.set_protocol(handed)
        handed.data_received(data)
        return True

    def read_more(self) -> None:
        self._queue.read_more()
        self._expect_next()

    def _check_buffered(self) -> None:
        try:
            self._shared.usage.check_bytes(self, self.buffered())
        except AccessRefused as refusal:
            self.refuse(refusal)

    def _discard(self, size: int) -> None:
        self._lingered += size
        if self._lingered <= MAX_LINGERING:
            self.advance()
        elif self._closing:
            self._transport.close()
        else:
            self._transport.pause_reading()

    def new_exchange(self, parser: RequestParser) -> HttpExchange:
        """Raises AccessRefused."""
        exchange = HttpExchange(self, parser.method, parser.target, parser.headers, parser.http_version)
        exchange.keep_alive = exchange.http_version != "1.0" and parser.keep_alive
        exchange.expects_continue = parser.expects_continue
        exchange.fast_handler = self._find_fast_handler(exchange)
        exchange.access_version = self._shared.access_version()
        if exchange.fast_handler is None:
            exchange.scope = self._new_scope(exchange)
        return exchange

    def _find_fast_handler(self, exchange: HttpExchange) -> FastHandler | None:
        """A head that repeats the previous one, except for the content-length, is not checked again while the same
        credentials are accepted."""
        if exchange.method != b"POST" or not exchange.keep_alive or exchange.expects_continue:
            return None
        if self._app is _FOREIGN_USER:
            return None
        version = self._shared.access_version()
        head = version, exchange.target, [each for each in exchange.headers if each[0] != b"content-length"]
        if head != self._last_head:
            self._last_head = head
            self._last_fast_handler = self._shared.find_fast_handler(exchange.target, exchange.headers, self)
        return self._last_fast_handler

    def _new_scope(self, exchange: HttpExchange) -> Scope:
        scope = new_scope(exchange, client=self._client, server=self._transport.get_extra_info("sockname"))
        scope["state"] = self._app_state.copy()
        scope[CONNECTION] = self
        return scope

    # Responses

    def advance(self) -> None:
        """Start the next request if it is its turn."""
        queue = self._queue
        if self._closing or queue.current is not None or self._sender.stalled_at is not None:
            return
        if queue.waiting:
            self._begin(queue.waiting[0])
        elif self._refusal is not None:
            refusal = self._refusal
            HttpExchange(self, b"", b"", [], "1.1").answer(
                refusal.status, _TEXT, refusal.reason.encode(), refusal.headers
            )
        elif self._half_closed:
            self._transport.close()

    def _begin(self, exchange: HttpExchange) -> None:
        answering = None
        if exchange.access_version != self._shared.access_version():  # it waited in the queue: look again
            exchange.fast_handler = self._find_fast_handler(exchange)
        if exchange.fast_handler is not None and exchange.received <= LARGEST:
            if not exchange.whole:
                return
            answering = exchange.fast_handler(bytes(exchange.body), exchange)
        if answering is None:
            exchange.scope = exchange.scope or self._new_scope(exchange)
            answering = exchange.run(self._app)
        self._queue.waiting.popleft()
        self._queue.current = exchange
        task = self._loop.create_task(answering)
        self._server.tasks.add(task)
        task.add_done_callback(partial(self._ended, exchange))

    def _ended(self, exchange: HttpExchange, task: "asyncio.Task[None]") -> None:
        self._server.tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _logger.error("request failed", exc_info=problem)
        if exchange.complete or exchange.disconnected:
            return
        if exchange.started:
            self._transport.close()
            return
        exchange.keep_alive = False
        if task.cancelled():
            exchange.answer(503, _TEXT, b"the server is stopping")
        else:
            exchange.answer(500, _TEXT, b"Internal Server Error")

    def completed(self, exchange: HttpExchange) -> None:
        self._answered += 1
        self.serving = None
        self._queue.current = None
        if self.held:
            count(self, self.buffered())
        if exchange.keep_alive:
            self.advance()
            self.read_more()
        else:
            self._finish()

    def refuse(self, refusal: AccessRefused) -> None:
        """Refuse in turn. An incomplete request gets no other response."""
        self._refusal = refusal
        incomplete = self._queue.stop()
        if incomplete is not None and incomplete.started:
            self._finish()
            return
        if incomplete is not None:
            incomplete.disconnect()
            self._queue.remove(incomplete)
        self.advance()

    def _finish(self) -> None:
        """Lingering close: closing while bytes arrive would reset the connection and lose the last response."""
        self._closing = True
        self._queue.stop()
        if self._transport.is_closing():
            return
        if self._half_closed or self._stopping:
            self._transport.close()
            return
        self._transport.write_eof()
        self._queue.resume()
        self._deadline.expect("close", self.linger_seconds)

    # Back-pressure

    @property
    def default_headers(self) -> Sequence[Header]:
        return self._server.default_headers

    @property
    def stalled_at(self) -> float | None:
        return self._sender.stalled_at

    def write(self, data: bytes) -> None:
        self._sender.write(data)
        if self._sender.stalled_at is not None:
            self._shared.usage.shed(self, self.buffered())

    async def drain(self) -> None:
        await self._sender.drain()

    def buffered(self) -> int:
        return self._sender.unread() + self._queue.buffered()

    def drop(self) -> None:
        self._transport.abort()

    end_revoked = drop

    def pause_writing(self) -> None:
        self._sender.pause()
        self._shared.usage.shed(self, self.buffered())

    def resume_writing(self) -> None:
        self._sender.resume()
        count(self, self.buffered())
        self.advance()
        self.read_more()

    # Deadlines

    def _expect_next(self) -> None:
        """Set the deadline for what the client must send next."""
        if self._refusal is not None or self._closing:
            return
        queue = self._queue
        if queue.arriving is not None:
            self._deadline.expect(queue.arriving, self.body_seconds)
        elif queue.current is not None or queue.waiting:
            self._deadline.clear()
        elif queue.has_begun_request:
            self._deadline.expect(("head", self._answered), self.head_seconds)
        elif self._answered:
            self._deadline.expect(self._answered, self._idle_seconds)

    def _expired(self) -> None:
        if self._closing:
            self._transport.close()
        elif self._refusal is not None:
            self.advance()
        elif self._queue.is_paused:
            self._expect_next()
        elif self._queue.has_begun_request:
            self.refuse(AccessRefused(408, "the request did not arrive in time"))
        else:
            self._transport.close()
