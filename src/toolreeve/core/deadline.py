"""How long may a call still take? Its time runs while it is worked on, and stands still while a person thinks.

A person has time of their own for each question. Who lets it pass once is not waited for again: from then on the call's
time runs whatever is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

T = TypeVar("T")


class Deadline:
    """`seconds` are for the work, `patience` is for what a person thinks about one question."""

    __slots__ = ("_expire", "_held", "_left", "_timer", "_waits", "has_passed", "patience", "seconds")

    def __init__(self, seconds: float, patience: float) -> None:
        self.seconds, self.patience = seconds, patience
        self.has_passed = False
        self._left = seconds
        self._held = 0
        self._waits = True
        self._expire: Callable[[], Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

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
            self._rest()

    def go_on(self) -> None:
        self._held -= 1
        if not self._held:
            self._run()

    def give_up(self) -> None:
        """Time does not stand still any more, for anybody."""
        self._waits = False
        self._run()

    def _run(self) -> None:
        if self._expire is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._left, self._pass)

    def _rest(self) -> None:
        if self._timer is not None:
            self._left = max(self._timer.when() - asyncio.get_running_loop().time(), 0.0)
            self._timer.cancel()
            self._timer = None

    def _pass(self) -> None:
        if self._expire is not None:
            self.has_passed = True
            self._expire()


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
