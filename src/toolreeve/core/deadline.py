"""Deadlines of calls, paused while a person answers a question.

Each question has its own timeout. Once one expires, later ones no longer pause the deadline.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

T = TypeVar("T")
SPARE = 1_000
TICK = 0.001
"""Precision of timers."""


class Alarms:
    """One loop timer for all deadlines of a runtime: nearly all are met, and setting a timer costs more than
    discarding an entry."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Deadline]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = 0
        self.live = 0

    def set(self, deadline: "Deadline", when: float) -> None:
        """Check the deadline at `when`."""
        if len(self._heap) > 2 * self.live + SPARE:
            self._heap = [entry for entry in self._heap if entry[2].is_due_at(entry[0])]
            heapify(self._heap)
        self._numbers += 1
        heappush(self._heap, (when, self._numbers, deadline))
        if self._timer is None or when < self._timer.when():
            self._arm(when)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time() + TICK
        while self._heap:
            when, _, deadline = self._heap[0]
            is_due = deadline.is_due_at(when)
            if is_due and when > now:
                self._arm(when)
                return
            heappop(self._heap)
            if is_due:
                deadline.expire()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Deadline:
    """`seconds` are for the work, `patience` is the timeout of one question to a person."""

    __slots__ = (
        "_alarms",
        "_left",
        "_on_expiry",
        "_pausable",
        "_pauses",
        "_until",
        "has_passed",
        "patience",
        "seconds",
    )

    def __init__(self, seconds: float, patience: float, alarms: Alarms | None = None) -> None:
        self.seconds = seconds
        self.patience = patience
        self.has_passed = False
        self._alarms = alarms or Alarms()
        self._left = seconds
        self._pauses = 0
        self._pausable = True
        self._on_expiry: Callable[[], Any] | None = None
        self._until: float | None = None

    def start(self, on_expiry: Callable[[], Any]) -> None:
        """Call `on_expiry` when the time is over, unless stopped before."""
        self._on_expiry = on_expiry
        if not self._pauses:
            self._run()

    def stop(self) -> None:
        self._on_expiry = None
        self._disarm()

    def pause(self) -> None:
        """Stop the time until `resume` was called as often."""
        self._pauses += 1
        if self._pausable:
            if self._until is not None:
                self._left = max(self._until - asyncio.get_running_loop().time(), 0.0)
            self._disarm()

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses:
            self._run()

    def stop_pausing(self) -> None:
        """Ignore pauses from now on, the current ones included."""
        self._pausable = False
        self._run()

    def is_due_at(self, when: float) -> bool:
        """Whether `when` is still its time; it may have been stopped or paused since."""
        return self._until == when

    def expire(self) -> None:
        on_expiry = self._on_expiry
        self._disarm()
        if on_expiry is not None:
            self.has_passed = True
            on_expiry()

    def _run(self) -> None:
        if self._on_expiry is not None and self._until is None:
            self._until = asyncio.get_running_loop().time() + self._left
            self._alarms.live += 1
            self._alarms.set(self, self._until)

    def _disarm(self) -> None:
        if self._until is not None:
            self._until = None
            self._alarms.live -= 1


async def await_answer(answer: Awaitable[T], deadlines: Collection[Deadline]) -> T:
    """A person's answer; the deadlines of the calls it concerns are paused meanwhile. Raises TimeoutError."""
    for deadline in deadlines:
        deadline.pause()
    try:
        async with asyncio.timeout(max((deadline.patience for deadline in deadlines), default=None)):
            return await answer
    except TimeoutError:
        for deadline in deadlines:
            deadline.stop_pausing()
        raise
    finally:
        for deadline in deadlines:
            deadline.resume()
