"""How long may a call still take? Its time runs while it is worked on, and stands still while a person thinks.

A person has time of their own for each question. Who lets it pass once is not waited for again: from then on the call's
time runs whatever is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

T = TypeVar("T")
SPARE = 1_000
TICK = 0.001
"""Timers are that exact."""


class Alarms:
    """One timer of the loop for all deadlines of a runtime: nearly all are met, and setting a timer costs more than
    forgetting one."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Deadline]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = 0
        self.live = 0

    def set(self, deadline: "Deadline", when: float) -> None:
        """Look at the deadline then."""
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
        self._timer, now = None, asyncio.get_running_loop().time() + TICK
        while self._heap:
            when, _, deadline = self._heap[0]
            is_due = deadline.is_due_at(when)
            if is_due and when > now:
                self._arm(when)
                return
            heappop(self._heap)
            if is_due:
                deadline.pass_by()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Deadline:
    """`seconds` are for the work, `patience` is for what a person thinks about one question."""

    __slots__ = ("_alarms", "_expire", "_held", "_left", "_until", "_waits", "has_passed", "patience", "seconds")

    def __init__(self, seconds: float, patience: float, alarms: Alarms | None = None) -> None:
        self.seconds, self.patience = seconds, patience
        self.has_passed = False
        self._alarms = alarms or Alarms()
        self._left = seconds
        self._held = 0
        self._waits = True
        self._expire: Callable[[], Any] | None = None
        self._until: float | None = None

    def start(self, expire: Callable[[], Any]) -> None:
        """Call `expire` when the time is over, unless it is stopped before."""
        self._expire = expire
        if not self._held:
            self._run()

    def stop(self) -> None:
        self._expire = None
        self._rest()

    def hold(self) -> None:
        """Let time stand still until `go_on` was called as often."""
        self._held += 1
        if self._waits:
            if self._until is not None:
                self._left = max(self._until - asyncio.get_running_loop().time(), 0.0)
            self._rest()

    def go_on(self) -> None:
        self._held -= 1
        if not self._held:
            self._run()

    def give_up(self) -> None:
        """Time does not stand still any more, for anybody."""
        self._waits = False
        self._run()

    def is_due_at(self, when: float) -> bool:
        """Whether that is when its time is over; it may have been stopped or held since that was said."""
        return self._until == when

    def pass_by(self) -> None:
        """Its time is over."""
        expire = self._expire
        self._rest()
        if expire is not None:
            self.has_passed = True
            expire()

    def _run(self) -> None:
        if self._expire is not None and self._until is None:
            self._until = asyncio.get_running_loop().time() + self._left
            self._alarms.live += 1
            self._alarms.set(self, self._until)

    def _rest(self) -> None:
        if self._until is not None:
            self._until = None
            self._alarms.live -= 1


async def thought(answering: Awaitable[T], deadlines: Collection[Deadline]) -> T:
    """What a person answers, while the time of the calls it is about stands still. Raises TimeoutError."""
    for deadline in deadlines:
        deadline.hold()
    try:
        async with asyncio.timeout(max((deadline.patience for deadline in deadlines), default=None)):
            return await answering
    except TimeoutError:
        for deadline in deadlines:
            deadline.give_up()
        raise
    finally:
        for deadline in deadlines:
            deadline.go_on()
