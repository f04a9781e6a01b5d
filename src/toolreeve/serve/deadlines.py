"""Read deadlines of a connection, on one lazy timer.

A running timer is left to expire and is then set again, so that most requests set none.
"""

import asyncio
import math
from collections.abc import Callable


class ConnectionDeadline:
    """Calls `expired` when the client has not sent the expected bytes in time."""

    __slots__ = ("_expected", "_expired", "_loop", "_timer", "_when")

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._expected: object = None
        self._when = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, what: object, seconds: float) -> None:
        """An expectation that is already set keeps its deadline."""
        if what == self._expected:
            return
        self._expected = what
        self._when = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._when:
            self.cancel()
            self._set()

    def clear(self) -> None:
        """Expect nothing; a running timer then expires without effect."""
        self._expected = None
        self._when = math.inf

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self) -> None:
        self._timer = self._loop.call_at(self._when, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._loop.time() >= self._when:
            self.clear()
            self._expired()
        elif self._when < math.inf:
            self._set()
