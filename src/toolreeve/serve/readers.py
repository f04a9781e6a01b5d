"""How long is an answer kept for somebody who does not read it? As long as they take some of it now and then.

Whoever takes nothing would otherwise hold what waits for them, and their place, for as long as they like: a connection
that is closed ends only when all of it has been taken.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class ReaderProtocol(HttpToolsProtocol):
    """Most clients take an answer at once, and cost nothing here."""

    reading_seconds = 60.0
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that we are told of whatever is not taken at once

    def connection_lost(self, exc: Exception | None) -> None:
        self._look_no_more()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        self._look_no_more()
        super().resume_writing()

    def _look_later(self) -> None:
        untaken = self.transport.get_write_buffer_size()
        self._look = self.loop.call_later(self.reading_seconds, self._compare, untaken)

    def _compare(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._look_later()
        else:
            self.transport.abort()

    def _look_no_more(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
