"""The HTTP/1.1 protocol of the server: order, deadlines and quotas of a connection.

The requests of one connection are answered in their order, one at a time, and none is begun before the response to the
one before it has been read. What cannot be read is refused in its turn, and ends the connection: nothing behind it is
taken for a request. What is kept for a client is bounded in bytes and in time.

Of uvicorn it uses what its server asks of any protocol class, and nothing of its own protocols.
"""

import asyncio
import logging
import math
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Scope

from toolreeve.serve.exchange import CONTINUE, Exchange, Take
from toolreeve.serve.gate import Header, Refused
from toolreeve.serve.limits import Share, Usage, count, peer_address
from toolreeve.serve.parser import RequestParser

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

CONNECTION = "toolreeve.connection"
"""Where an application finds, in the scope of a request, the connection that it came on."""
LARGEST = 64 * 1024
"""Bytes of a body that may be answered the short way."""
MOST_WAITING = 16
"""Requests of one connection that are parsed before those in front of them are answered."""
MOST_LINGERING = 8 * 1024 * 1024
"""Bytes that are read and dropped behind the last response, so that the client can read it before the end."""
_TEXT = b"text/plain; charset=utf-8"
_PIECE = 4096
_BACKLOG = 2 * LARGEST
_PROBES = (0.25, 15.0)

_logger = logging.getLogger(__name__)
_STRANGER = PlainTextResponse(
    "only programs of the user who serves this come in without a token; configure serve.tokens", status_code=403
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """What the connections of one server share.

    `recognise` says, given the target and the headers of a POST, who takes its body the short way. `admit` gives the
    user at the far end of a connection, None for one who does not come in; it is asked where no token is.
    """

    usage: Usage
    recognise: Callable[[bytes, Sequence[Header], "HttpProtocol"], Take | None]
    admit: Callable[[socket.socket], int | None] | None = None


class HttpProtocol(asyncio.Protocol):
    """`_arriving` is the request whose body is not complete yet, `_answering` the one whose turn it is."""

    head_seconds = 10.0
    body_seconds = 60.0
    reading_seconds = 60.0
    linger_seconds = 5.0

    def __init__(
        self,
        entrance: Entrance,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._entrance, self._server, self._app_state = entrance, server_state, app_state
        self._app: ASGIApp = config.loaded_app
        self._idle_seconds = float(config.timeout_keep_alive)
        self._loop = _loop or asyncio.get_running_loop()
        self._parser = RequestParser(self)
        self._unparsed = bytearray()
        self._waiting: deque[Exchange] = deque()
        self._arriving: Exchange | None = None
        self._answering: Exchange | None = None
        self._refusal: Refused | None = None
        self._said_before: tuple[bytes, list[Header]] | None = None
        self._taken_before: Take | None = None
        self._read_paused = self._half_closed = self._closing = self._stopping = False
        self._lingered = self._requests = self._unread = 0
        self._writable = asyncio.Event()
        self._awaited: object = None
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None
        self.address = self.owner = ""
        self.held = 0
        self.stalled_at: float | None = None
        self.shares: list[Share] = []

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # What a client sent before it broke off is still read: nothing that fails here may leave the door open.
        app, self._app = self._app, _STRANGER
        self._transport = transport
        self._server.connections.add(self)  # type: ignore[arg-type]  # the server only asks them to shut down
        transport.set_write_buffer_limits(high=0)  # so that we are told of whatever is not taken at once
        self._client: Any = transport.get_extra_info("peername")
        self.address = peer_address(self._client[0]) if self._client else ""
        self._await("first", self.head_seconds)
        try:
            self._entrance.usage.enter(self, self.address)
            if self._is_admitted():
                self._app = app
        except Refused as refusal:
            self._refusal = refusal
            self._await("refusal", self.linger_seconds)

    def _is_admitted(self) -> bool:
        """Raises Refused."""
        if self._entrance.admit is None:
            return True
        user = self._entrance.admit(self._transport.get_extra_info("socket"))
        if user is None:
            return False
        self.identify(f"user {user}")
        return True

    def identify(self, owner: str) -> None:
        """Whose connection this is, as it has just shown. Raises Refused."""
        if owner != self.owner:
            self._entrance.usage.identify(self, owner)
            self.owner = owner

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._server.connections.discard(self)
        self._entrance.usage.leave(self)
        self._closing = True
        for timer in (self._timer, self._reading_timer):
            if timer is not None:
                timer.cancel()
        self._writable.set()
        self.stalled_at = None
        if self._answering is not None:
            self._answering.disconnect()
        self._waiting.clear()

    def eof_received(self) -> bool:
        """A client that says no more may still be there to read: it is answered what it asked."""
        if self._closing:
            return False
        self._half_closed = True
        if self._arriving is not None or self._parser.begun:
            self._refuse(Refused(400, "the request ended before it was complete"))
        if self._answering is None and not self._waiting:
            return False
        self._loop.call_later(_PROBES[0], self._probe, _PROBES[0])
        return True

    def _probe(self, delay: float) -> None:
        """Whether a client that has ended its side has gone altogether: then the second write fails."""
        if self._closing or self._answering is None:
            return
        if self._answering.started or self._answering.http_version == "1.0":
            self._transport.abort()
            return
        self._transport.write(CONTINUE)
        self._loop.call_later(delay, self._probe, min(2 * delay, _PROBES[1]))

    def shutdown(self) -> None:
        """The server stops: what has been asked is answered, and nothing else."""
        self._stopping = True
        last = self._waiting[-1] if self._waiting else self._answering
        if last is None or self._closing:
            self._transport.close()
        else:
            last.keep_alive = False

    # What arrives

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None or self._closing:
            self._discard(len(data))
            return
        if self._unparsed or len(data) > _PIECE or not self._has_room():
            self._unparsed += data
        else:
            self._parse(data)
        if self._unparsed or self._waiting or self._read_paused:
            self.read_more()
        else:
            self._watch()
        if len(data) > _PIECE or self.held or (self._arriving is not None and self._arriving.received > LARGEST):
            self._count_arrived()

    def read_more(self) -> None:
        """Parse what has come, and let more come, as far as there is room for it."""
        while self._unparsed and self._refusal is None and self._has_room():
            piece = bytes(self._unparsed[:_PIECE])
            del self._unparsed[:_PIECE]
            self._parse(piece)
        full = self._refusal is None and (bool(self._unparsed) or not self._has_room())
        if full != self._read_paused and not self._transport.is_closing():
            self._read_paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
        self._watch()

    def _has_room(self) -> bool:
        if self._waiting:
            backlog = sum(len(each.body) for each in self._waiting)
            if len(self._waiting) >= MOST_WAITING or backlog > _BACKLOG:
                return False
        return self._answering is None or len(self._answering.body) <= _BACKLOG

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except Refused as refusal:
            self._refuse(refusal)

    def _count_arrived(self) -> None:
        try:
            self._entrance.usage.check_bytes(self, self.buffered())
        except Refused as refusal:
            self._refuse(refusal)

    def _discard(self, size: int) -> None:
        self._lingered += size
        if self._closing and self._lingered > MOST_LINGERING:
            self._transport.close()
        elif self._lingered > MOST_LINGERING:
            self._transport.pause_reading()
        else:
            self._advance()

    def on_head(self, parser: RequestParser) -> None:
        exchange = Exchange(self, parser.method, parser.target, parser.headers, parser.http_version)
        exchange.keep_alive = exchange.http_version != "1.0" and parser.keep_alive
        exchange.expects_continue = parser.expects_continue
        exchange.take = self._recognised(exchange)
        if exchange.take is None:
            exchange.scope = self._scope(exchange)
        self._arriving = exchange
        self._waiting.append(exchange)
        if exchange.take is None:
            self._advance()

    def _recognised(self, exchange: Exchange) -> Take | None:
        """A head that says the same as the one before it, but for the length of the body, is not judged again."""
        if exchange.method != b"POST" or not exchange.keep_alive or exchange.expects_continue:
            return None
        if self._app is _STRANGER:
            return None
        said = exchange.target, [each for each in exchange.headers if each[0] != b"content-length"]
        if said != self._said_before:
            self._said_before = said
            self._taken_before = self._entrance.recognise(exchange.target, exchange.headers, self)
        return self._taken_before

    def _scope(self, exchange: Exchange) -> Scope:
        try:
            url = httptools.parse_url(exchange.target)
        except httptools.HttpParserInvalidURLError:
            raise Refused(400, "the target of the request is no URL") from None
        path = url.path or b"/"
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": exchange.http_version,
            "method": exchange.method.decode("ascii"),
            "scheme": "http",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": url.query or b"",
            "root_path": "",
            "headers": exchange.headers,
            "client": self._client[:2] if self._client else None,
            "server": (self._transport.get_extra_info("sockname") or ("", 0))[:2],
            "state": self._app_state.copy(),
            CONNECTION: self,
        }

    def on_body(self, data: bytes) -> None:
        exchange = self._arriving
        if exchange is None:  # it has been answered, and what is left of it is not read
            return
        exchange.body += data
        exchange.received += len(data)
        exchange.changed()
        if exchange.take is not None and exchange.received > LARGEST:
            self._advance()

    def on_end(self) -> None:
        exchange, self._arriving = self._arriving, None
        if exchange is None:
            return
        exchange.whole = True
        exchange.changed()
        self._advance()

    # What is answered

    def _advance(self) -> None:
        """Begin what is next, if it is its turn."""
        if self._closing or self._answering is not None or self.stalled_at is not None:
            return
        if self._waiting:
            self._begin(self._waiting[0])
        elif self._refusal is not None:
            self._answer_refusal(self._refusal)
        elif self._half_closed:
            self._transport.close()

    def _begin(self, exchange: Exchange) -> None:
        answering = None
        if exchange.take is not None and exchange.received <= LARGEST:
            if not exchange.whole:
                return
            answering = exchange.take(bytes(exchange.body), exchange)
        if answering is None:
            exchange.scope = exchange.scope or self._scope(exchange)
            answering = exchange.run(self._app)
        self._waiting.popleft()
        self._answering = exchange
        task = self._loop.create_task(answering)
        self._server.tasks.add(task)
        task.add_done_callback(partial(self._ended, exchange))

    def _ended(self, exchange: Exchange, task: "asyncio.Task[None]") -> None:
        self._server.tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _logger.error("a request could not be answered", exc_info=problem)
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

    def completed(self, exchange: Exchange) -> None:
        self._server.total_requests += 1
        self._requests += 1
        self._answering = None
        if self.held:
            count(self, self.buffered())
        if exchange.keep_alive:
            self._advance()
            if self._unparsed or self._read_paused:
                self.read_more()
            else:
                self._watch()
        else:
            self._finish()

    def _refuse(self, refusal: Refused) -> None:
        """In its turn. A request that began well and then could not be read is answered by nobody else."""
        self._refusal = refusal
        self._unparsed.clear()
        arriving, self._arriving = self._arriving, None
        if arriving is not None and arriving.started:
            self._finish()
            return
        if arriving is not None:
            arriving.disconnect()
            if arriving is self._answering:
                self._answering = None
            else:
                self._waiting.remove(arriving)
        self._advance()

    def _answer_refusal(self, refusal: Refused) -> None:
        exchange = Exchange(self, b"", b"", [], "1.1")
        exchange.answer(refusal.status, _TEXT, refusal.reason.encode(), refusal.headers)

    def _finish(self) -> None:
        """The last response is written. A connection that is closed while bytes arrive takes the response with it, so
        the client is left some time to read it and to close."""
        self._closing = True
        self._unparsed.clear()
        if self._transport.is_closing():
            return
        if self._half_closed or self._stopping:
            self._transport.close()
            return
        self._transport.write_eof()
        if self._read_paused:
            self._read_paused = False
            self._transport.resume_reading()
        self._await("end", self.linger_seconds)

    # What is sent

    @property
    def default_headers(self) -> Sequence[Header]:
        return self._server.default_headers

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        if self.stalled_at is None:
            self._unread = len(data)
        else:
            self._unread += len(data)
            self._entrance.usage.shed(self, self.buffered())

    async def drained(self) -> None:
        if self.stalled_at is not None:
            await self._writable.wait()

    def buffered(self) -> int:
        """Of a response that is read in part, the whole is kept."""
        unread = 0 if self.stalled_at is None else self._unread
        requests = [*self._waiting, self._answering] if self._answering is not None else self._waiting
        received = sum(each.received for each in requests)
        return unread + len(self._unparsed) + received

    def drop(self) -> None:
        self._transport.abort()

    def pause_writing(self) -> None:
        self.stalled_at = self._loop.time()
        self._writable.clear()
        self._look_later()
        self._entrance.usage.shed(self, self.buffered())

    def resume_writing(self) -> None:
        self.stalled_at = None
        self._writable.set()
        if self._reading_timer is not None:
            self._reading_timer.cancel()
        count(self, self.buffered())
        self._advance()
        self.read_more()

    def _look_later(self) -> None:
        unread = self._transport.get_write_buffer_size()
        self._reading_timer = self._loop.call_later(self.reading_seconds, self._compare, unread)

    def _compare(self, before: int) -> None:
        if self._transport.get_write_buffer_size() < before:
            self._look_later()
        else:
            self._transport.abort()

    # Deadlines

    def _watch(self) -> None:
        """Wait for what the client owes, from the moment on at which it owed it."""
        if self._refusal is not None or self._closing:
            return
        if self._arriving is not None:
            self._await(self._arriving, self.body_seconds)
        elif self._answering is not None or self._waiting:
            self._await(None, math.inf)
        elif self._parser.begun:
            self._await(("head", self._requests), self.head_seconds)
        elif self._requests:
            self._await(self._requests, self._idle_seconds)

    def _await(self, what: object, seconds: float) -> None:
        """A timer that is there already is let run out, and set anew then: most requests need none."""
        if what == self._awaited:
            return
        self._awaited = what
        self._deadline = math.inf if what is None else self._loop.time() + seconds
        if self._deadline < math.inf and (self._timer is None or self._timer.when() > self._deadline):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._loop.time() < self._deadline:
            if self._deadline < math.inf:
                self._timer = self._loop.call_at(self._deadline, self._look)
            return
        awaited, self._awaited = self._awaited, None
        if self._closing:
            self._transport.close()
        elif self._refusal is not None:
            self._advance()
        elif self._read_paused:
            self._watch()
        elif awaited is self._arriving or self._parser.begun:
            self._refuse(Refused(408, "the request did not arrive in time"))
        else:
            self._transport.close()
