"""In which order are the requests of one connection answered? As they came, one at a time, each with its own answer.

What cannot be read is refused in its turn, and ends the connection: nothing behind it is taken for a request. Whoever
goes away is noticed, whatever of theirs still waits.
"""

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from toolreeve.serve.readers import ReaderProtocol

MOST_WAITING = 64
"""Requests of one connection that wait until those before them are answered."""
_UNREADABLE = "Invalid HTTP request received."
_OF_UPGRADES = {b"upgrade", b"http2-settings"}


class Unreadable(Exception):
    """A request is not read any further, for a reason that its sender is told."""


class TurnProtocol(ReaderProtocol):
    """`_answering` is the request whose turn it is, `_arriving` the one whose body is not complete yet."""

    _answering: RequestResponseCycle | None = None
    _arriving: RequestResponseCycle | None = None
    _refusal: str | None = None

    @property
    def is_answering(self) -> bool:
        return self._answering is not None and not self._answering.response_complete

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        self._unset_keepalive_if_required()
        try:
            unread = self._parse(data)
            while unread is not None:
                self.parser.feed_data(self._head_without_upgrade())
                unread = self._parse(unread)
        except httptools.HttpParserError as problem:
            reason = problem.__context__ or problem
            self.logger.warning("%s %.200s", _UNREADABLE, repr(reason))
            self._refuse(str(reason) if isinstance(reason, Unreadable) else _UNREADABLE)

    def _parse(self, data: bytes | memoryview) -> memoryview | None:
        """What is left where the parser gives up a request, because it asks for another protocol. Here, it does not."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as found:
            return memoryview(data)[found.args[0] :]
        return None

    def _head_without_upgrade(self) -> bytes:
        first = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = [(name, value) for name, value in self.scope["headers"] if name not in _OF_UPGRADES]
        lines = [(name, _without_upgrade(value) if name == b"connection" else value) for name, value in kept]
        return first + b"".join([b"%s: %s\r\n" % each for each in lines]) + b"\r\n"

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise Unreadable("this is no proxy")
            return
        if len(self.pipeline) >= MOST_WAITING:
            raise Unreadable(f"more than {MOST_WAITING} requests wait for their answers; read some first")
        super().on_headers_complete()
        self._arriving = self.cycle
        # Uvicorn stops reading while requests wait, and would not notice that the client has gone.
        if self.pipeline and sum(len(cycle.body) for cycle, _ in self.pipeline) <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._arriving = None
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: object) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._refusal is not None and not self.is_answering and not self.transport.is_closing():
            self.send_400_response(self._refusal)

    def _refuse(self, reason: str) -> None:
        self._refusal = reason
        unread, self._arriving = self._arriving, None
        if unread is not None and unread.response_started:
            self.transport.close()
            return
        if unread is not None:
            self._forget(unread)
        if not self.is_answering:
            self.send_400_response(reason)

    def _forget(self, unread: RequestResponseCycle) -> None:
        """A request that began well and then could not be read: nobody answers it any more."""
        unread.disconnected = True
        unread.message_event.set()
        if unread is self._answering:
            self._answering = None
        else:
            self.pipeline.popleft()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()


def _without_upgrade(connection: bytes) -> bytes:
    return b",".join(each for each in connection.split(b",") if each.strip().lower() not in _OF_UPGRADES)
