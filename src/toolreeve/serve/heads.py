"""How long may a request take to say what it is? So many bytes, and so many seconds; then the connection ends.

Who sends it is known only when its head is complete. Until then anybody can send, and what they send is kept.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BYTES = 256 * 1024


class HeadProtocol(HttpToolsProtocol):
    """Most heads arrive in one piece, and cost nothing here."""

    seconds = 10.0
    _in_head = True
    _size = 0
    _last_moment: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._last_moment = self.loop.call_later(self.seconds, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._wait(len(data))
        elif self._last_moment is not None:
            self._arrived()

    def _wait(self, more: int) -> None:
        self._size += more
        if self._size > MOST_BYTES:
            self.transport.close()
        elif self._last_moment is None:
            self._last_moment = self.loop.call_later(self.seconds, self.transport.close)

    def _arrived(self) -> None:
        self._size = 0
        if self._last_moment is not None:
            self._last_moment.cancel()
            self._last_moment = None
