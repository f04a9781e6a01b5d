"""Queue of pipelined requests of one connection, with bounded read-ahead.

Beyond the bound bytes stay in the kernel's buffers: reading pauses until earlier requests are answered.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from toolreeve.serve.access import AccessRefused
from toolreeve.serve.exchange import HttpExchange
from toolreeve.serve.parser import RequestParser

if TYPE_CHECKING:
    from toolreeve.serve.protocol import HttpProtocol

LARGEST = 64 * 1024
"""Largest body, in bytes, that the fast path answers."""
MAX_WAITING = 16
"""Requests of one connection that are parsed ahead of their turn."""
PIECE = 4096
"""Bytes that are parsed between two checks for room."""
_MAX_BODY_BYTES = 2 * LARGEST


class RequestQueue:
    """`arriving` is the request whose body is incomplete, `current` the one being answered."""

    def __init__(self, owner: "HttpProtocol", transport: asyncio.Transport) -> None:
        self._owner = owner
        self._transport = transport
        self._parser = RequestParser(self)
        self._unparsed = bytearray()
        self._stopped = False
        self.is_paused = False
        self.waiting: deque[HttpExchange] = deque()
        self.arriving: HttpExchange | None = None
        self.current: HttpExchange | None = None

    def feed(self, data: bytes) -> None:
        if self._unparsed or len(data) > PIECE or not self._has_room():
            self._unparsed += data
        else:
            self._parse(data)
        if self._unparsed or self.waiting or self.is_paused:
            self.read_more()

    def read_more(self) -> None:
        """Parse buffered bytes and resume reading, as far as there is room."""
        while self._unparsed and self._has_room():
            piece = bytes(self._unparsed[:PIECE])
            del self._unparsed[:PIECE]
            self._parse(piece)
        full = not self._stopped and (bool(self._unparsed) or not self._has_room())
        if full and not self.is_paused and not self._transport.is_closing():
            self.is_paused = True
            self._transport.pause_reading()
        elif not full:
            self.resume()

    def resume(self) -> None:
        if self.is_paused and not self._transport.is_closing():
            self.is_paused = False
            self._transport.resume_reading()

    def stop(self) -> HttpExchange | None:
        """Parse nothing more. Returns the incomplete request, if any."""
        self._stopped = True
        self._unparsed.clear()
        incomplete, self.arriving = self.arriving, None
        return incomplete

    def remove(self, exchange: HttpExchange) -> None:
        if exchange is self.current:
            self.current = None
        else:
            self.waiting.remove(exchange)

    @property
    def has_begun_request(self) -> bool:
        return self.arriving is not None or self._parser.begun

    def buffered(self) -> int:
        """Buffered bytes. A body counts whole until its request is answered."""
        received = sum(each.received for each in self.waiting)
        if self.current is not None:
            received += self.current.received
        return len(self._unparsed) + received

    def _has_room(self) -> bool:
        if self.waiting:
            body_bytes = sum(len(each.body) for each in self.waiting)
            if len(self.waiting) >= MAX_WAITING or body_bytes > _MAX_BODY_BYTES:
                return False
        return self.current is None or len(self.current.body) <= _MAX_BODY_BYTES

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except AccessRefused as refusal:
            self._owner.refuse(refusal)

    # Called by the parser

    def on_head(self, parser: RequestParser) -> None:
        exchange = self._owner.new_exchange(parser)
        self.arriving = exchange
        self.waiting.append(exchange)
        if exchange.fast_handler is None:
            self._owner.advance()

    def on_body(self, data: bytes) -> None:
        exchange = self.arriving
        if exchange is None:  # already answered; the rest of its body is ignored
            return
        exchange.body += data
        exchange.received += len(data)
        exchange.changed()
        if exchange.fast_handler is not None and exchange.received > LARGEST:
            self._owner.advance()

    def on_end(self) -> None:
        exchange, self.arriving = self.arriving, None
        if exchange is None:
            return
        exchange.whole = True
        exchange.changed()
        self._owner.advance()
