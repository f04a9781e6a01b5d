"""Response sending: back-pressure, write timeout, half-close probe.

A client that reads nothing for `timeout` seconds is cut off.
"""

import asyncio
from collections.abc import Callable

from toolreeve.serve.exchange import CONTINUE, HttpExchange

_FIRST_PROBE = 0.25
_LONGEST_PROBE = 15.0


class ResponseSender:
    """`stalled_at` is when the socket stopped accepting bytes; None while it accepts them."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, timeout: float) -> None:
        transport.set_write_buffer_limits(high=0)  # pause as soon as the socket does not accept everything
        self._transport = transport
        self._loop = loop
        self._timeout = timeout
        self._timer: asyncio.TimerHandle | None = None
        self._probe_timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._size = 0
        self.stalled_at: float | None = None

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        if self.stalled_at is None:
            self._size = len(data)
        else:
            self._size += len(data)

    def unread(self) -> int:
        """Bytes buffered for the client: a partly read response counts whole."""
        return 0 if self.stalled_at is None else self._size

    async def drain(self) -> None:
        if self.stalled_at is not None:
            await self._writable.wait()

    def pause(self) -> None:
        self.stalled_at = self._loop.time()
        self._writable.clear()
        self._start_timer()

    def resume(self) -> None:
        self.stalled_at = None
        self._writable.set()
        if self._timer is not None:
            self._timer.cancel()

    def stop(self) -> None:
        """The connection is lost."""
        self.resume()
        if self._probe_timer is not None:
            self._probe_timer.cancel()

    def _start_timer(self) -> None:
        unsent = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(self._timeout, self._check_progress, unsent)

    def _check_progress(self, before: int) -> None:
        if self._transport.get_write_buffer_size() < before:
            self._start_timer()
        else:
            self._transport.abort()

    def probe(self, current: Callable[[], HttpExchange | None], delay: float = _FIRST_PROBE) -> None:
        """Find out whether a half-closed client is gone: then writing to it fails.

        Until the response starts, the probe is an interim response; after that, the response itself. A stream may stay
        silent, so its half-closed client is assumed to be gone.
        """
        self._probe_timer = self._loop.call_later(delay, self._probe, current, delay)

    def _probe(self, current: Callable[[], HttpExchange | None], delay: float) -> None:
        exchange = current()
        if exchange is not None and exchange.is_open_stream and self.stalled_at is None:
            self._transport.abort()
            return
        if exchange is not None and not exchange.started and exchange.http_version != "1.0":
            self._transport.write(CONTINUE)
        self.probe(current, min(2 * delay, _LONGEST_PROBE))
