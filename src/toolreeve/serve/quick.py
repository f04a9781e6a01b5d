"""How is a small request answered with the least ado? It is read whole, and its answer leaves in one piece.

Only what a door recognises by its head goes this way. Whatever is in doubt goes the usual way, byte for byte, as if
nobody had looked; so does a request that comes while another of its connection is not answered yet.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from toolreeve.serve.arrivals import ArrivalProtocol

LARGEST = 64 * 1024

Header = tuple[bytes, bytes]
Take = Callable[[bytes, "Exchange"], Coroutine[Any, Any, None] | None]
"""Given a body, how its request is answered; None to leave it to the usual way."""
Recognise = Callable[[bytes, Sequence[Header]], Take | None]
"""Given the target and the headers of a POST, who takes its body; None likewise."""

_logger = logging.getLogger(__name__)
_STATUS_LINES = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}


class Exchange:
    """One request and its answer. Uvicorn's protocol sees in it a cycle of its own, and asks for no more than this.

    `left` is called should the client go away before it is answered.
    """

    __slots__ = ("_protocol", "disconnected", "keep_alive", "left", "response_complete")

    def __init__(self, protocol: "QuickProtocol") -> None:
        self._protocol = protocol
        self.disconnected = self.response_complete = False
        self.keep_alive = True
        self.left: Callable[[], None] | None = None

    @property
    def message_event(self) -> "Exchange":
        return self

    def set(self) -> None:
        """What uvicorn calls when the connection is lost."""
        if self.disconnected and self.left is not None:
            left, self.left = self.left, None
            left()

    def answer(self, status: int, kind: bytes, body: bytes) -> None:
        """The whole of it."""
        self._send(self._head(status, b"content-type: %s\r\ncontent-length: %d\r\n" % (kind, len(body))) + body)
        self._complete()

    def stream(self, kind: bytes) -> None:
        """Begin an answer that comes in parts."""
        how = b"cache-control: no-cache, no-transform\r\ntransfer-encoding: chunked\r\n"
        self._send(self._head(200, b"content-type: %s\r\n%s" % (kind, how)))

    def part(self, data: bytes) -> None:
        self._send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        """No more parts come."""
        self._send(b"0\r\n\r\n")
        self._complete()

    def _head(self, status: int, headers: bytes) -> bytes:
        usual = b"".join([b"%s: %s\r\n" % each for each in self._protocol.server_state.default_headers])
        closing = b"" if self.keep_alive else b"connection: close\r\n"
        return b"%s%s%s%s\r\n" % (_STATUS_LINES[status], usual, headers, closing)

    def _send(self, data: bytes) -> None:
        if not self.disconnected:
            self._protocol.transport.write(data)

    def _complete(self) -> None:
        self.response_complete = True
        if not self.keep_alive:
            self._protocol.transport.close()
        if not self.disconnected:
            self._protocol.on_response_complete()


class QuickProtocol(ArrivalProtocol):
    """Asks the application's `recognise`, if it has one. A head that says the same as the one before it on its
    connection, but for the length of what follows, is recognised without being read again."""

    _take: Take | None = None
    _body: bytes | bytearray = b""
    _before: tuple[bytes, list[Header]] | None = None
    _taken_before: Take | None = None

    def on_headers_complete(self) -> None:
        self._take = self._recognised() if self._is_usual() else None
        if self._take is None:
            super().on_headers_complete()
        else:
            self._body = b""
            self._take_head()

    def _is_usual(self) -> bool:
        parser, limit = self.parser, self.limit_concurrency
        if self.is_answering or self.expect_100_continue:
            return False
        if self.flow.write_paused:  # what was answered before must be read first
            return False
        if parser.get_method() != b"POST" or parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return False
        return not parser.should_upgrade() and (limit is None or max(len(self.connections), len(self.tasks)) < limit)

    def _recognised(self) -> Take | None:
        recognise: Recognise | None = getattr(self.app, "recognise", None)
        if recognise is None:
            return None
        said = self.url, [each for each in self.headers if each[0] != b"content-length"]
        if said != self._before:
            self._before, self._taken_before = said, recognise(self.url, self.headers)
        return self._taken_before

    def on_body(self, body: bytes) -> None:
        if self._take is None:
            super().on_body(body)
            return
        self._lacks = "body"
        if not self._body:
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:  # in many pieces perhaps, and not to be copied for each
            self._body = bytearray(self._body + body)
        if len(self._body) > LARGEST:
            self._go_the_usual_way()

    def on_message_complete(self) -> None:
        if self._take is None:
            super().on_message_complete()
            return
        self._lacks = None
        exchange = Exchange(self)
        answering = self._take(bytes(self._body), exchange)
        if answering is None:
            self._go_the_usual_way()
            super().on_message_complete()
            return
        self._take = None
        self.cycle = self._answering = cast(RequestResponseCycle, exchange)
        task = self.loop.create_task(answering)
        self.tasks.add(task)
        task.add_done_callback(partial(self._answered, exchange))

    def _go_the_usual_way(self) -> None:
        self._take = None
        super().on_headers_complete()
        if self._body:
            super().on_body(bytes(self._body))

    def _answered(self, exchange: Exchange, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _logger.error("a request could not be answered", exc_info=problem)
        if not exchange.response_complete:
            self.transport.close()
