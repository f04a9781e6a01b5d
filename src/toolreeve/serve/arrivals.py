"""How long may a request take to arrive? So many bytes and seconds for its head, and some more seconds for its body.

Who sends it is known only when its head is complete. Until then anybody can send, and what they send is kept; and who
is refused may not keep their place either.
"""

import asyncio
from typing import Literal

from toolreeve.serve.turns import TurnProtocol, Unreadable

MOST_BYTES = 256 * 1024
MOST_HEADERS = 256


class ArrivalProtocol(TurnProtocol):
    """Most requests arrive in one piece, and cost nothing here.

    `_lacks` is what is still on its way; what may follow the last part of a body counts as a head.
    """

    head_seconds = 10.0
    body_seconds = 60.0
    _lacks: Literal["head", "body"] | None = "head"
    _size = 0
    _last_moment: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._lacks = "head"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._take_head()
        super().on_headers_complete()

    def _take_head(self) -> None:
        if len(self.headers) > MOST_HEADERS:
            raise Unreadable(f"a request may have {MOST_HEADERS} headers at most")
        self._lacks = "body"
        if self._last_moment is not None:
            self._arrived()
        self.headers = []  # for what follows a body: it is not part of the head that was judged

    def on_chunk_header(self) -> None:
        self._lacks = "head"

    def on_body(self, body: bytes) -> None:
        self._lacks = "body"
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._lacks = None
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._lacks == "body":
            self._wait()
        elif self._lacks == "head" or not self.is_answering:
            self._count(len(data))
        elif self._last_moment is not None:
            self._arrived()

    def _count(self, more: int) -> None:
        self._size += more
        if self._size > MOST_BYTES or len(self.headers) > MOST_HEADERS:
            self.transport.close()
        else:
            self._wait()

    def _wait(self) -> None:
        if self._last_moment is None:
            seconds = self.body_seconds if self._lacks == "body" else self.head_seconds
            self._last_moment = self.loop.call_later(seconds, self._lose_patience)

    def _lose_patience(self) -> None:
        self._last_moment = None
        if self._waits_for_us():
            self._wait()
        else:
            self.transport.close()

    def _waits_for_us(self) -> bool:
        """Whether the rest could not come, or need not have come yet: something before it is still being answered."""
        return self.flow.read_paused or bool(self.pipeline) or (self._lacks != "body" and self.is_answering)

    def _arrived(self) -> None:
        """There is a last moment whenever something has been counted."""
        self._size = 0
        if self._last_moment is not None:
            self._last_moment.cancel()
            self._last_moment = None
