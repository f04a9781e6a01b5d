"""Circuit breaker of one tool: closed, open or half-open.

Pure: time is passed in. Only calls that began in the current state count: one that began before the breaker opened
says nothing about a probe, however late it ends.
"""

from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import CircuitBreaker

FAILURES = frozenset(
    {
        ErrorCode.TOOL_EXEC,
        ErrorCode.READ_ERROR,
        ErrorCode.WRITE_ERROR,
        ErrorCode.LIST_ERROR,
        ErrorCode.SEARCH_ERROR,
        ErrorCode.HTTP_TIMEOUT,
        ErrorCode.HTTP_ERROR,
        ErrorCode.TIMEOUT,
        ErrorCode.LIMIT,
        ErrorCode.UPSTREAM,
        ErrorCode.WORKER_LOST,
    }
)


def counts_as_failure(problem: BaseException) -> bool:
    """Whether the tool itself failed, rather than a refusal, bad arguments, a missing file or a cancellation."""
    if isinstance(problem, ToolError):
        return problem.code in FAILURES
    return isinstance(problem, Exception)


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """The breaker of one tool. Every `enter` that returns is followed by one `leave` with its ticket."""

    __slots__ = ("_epoch", "_failures", "_opened", "_probing", "_settings")

    def __init__(self, settings: CircuitBreaker) -> None:
        self._settings = settings
        self._failures: deque[float] = deque(maxlen=max(1, settings.failure_threshold))
        self._opened: float | None = None
        self._probing = False
        self._epoch = 0

    @classmethod
    def restore(cls, settings: CircuitBreaker, saved: Sequence[Any] | None, *, probe_ended: bool) -> "Breaker":
        """A breaker in the state that another process `saved`; None for a new one. `probe_ended`: a probe that runs
        by that state is given up."""
        breaker = cls(settings)
        if saved is not None:
            failures, breaker._opened, probing, breaker._epoch = saved
            breaker._probing = probing and not probe_ended
            breaker._failures.extend(failures)
        return breaker

    def saved(self) -> list[Any]:
        """Its state, as JSON can carry it."""
        return [list(self._failures), self._opened, self._probing, self._epoch]

    def state(self, now: float) -> BreakerState:
        if self._opened is None:
            return BreakerState.CLOSED
        if self._remaining(now) > 0 and not self._probing:
            return BreakerState.OPEN
        return BreakerState.HALF_OPEN

    def enter(self, now: float) -> int:
        """A ticket to hand back to `leave`. Raises ToolError(CIRCUIT_OPEN) while open or while a probe runs."""
        if self._opened is None:
            return self._epoch
        if self._probing:
            raise self._refusal("a probe call is running", 1.0)
        if (remaining := self._remaining(now)) > 0:
            raise self._refusal(f"try again in {remaining:.1f} s", remaining)
        self._probing = True
        self._epoch += 1
        return self._epoch

    def leave(self, ticket: int, now: float, *, failed: bool, completed: bool) -> None:
        """`completed` is False for a call that was cancelled or refused: it says nothing about the tool."""
        if ticket != self._epoch:
            return
        if self._probing:
            self._conclude(now, failed=failed, completed=completed)
        elif failed and self._opened is None:
            self._count(now)

    def _conclude(self, now: float, *, failed: bool, completed: bool) -> None:
        self._probing = False
        self._epoch += 1
        if failed:
            self._opened = now
        elif completed:
            self._opened = None
            self._failures.clear()

    def _count(self, now: float) -> None:
        failures = self._failures
        failures.append(now)
        if len(failures) == failures.maxlen and now - failures[0] <= self._settings.monitoring_period:
            self._opened = now
            self._epoch += 1

    def _remaining(self, now: float) -> float:
        """Seconds until the next probe."""
        return 0.0 if self._opened is None else self._opened + self._settings.recovery_timeout - now

    def _refusal(self, advice: str, wait: float) -> ToolError:
        settings = self._settings
        failures = f"{settings.failure_threshold} failures within {settings.monitoring_period:g} s"
        return ToolError(
            ErrorCode.CIRCUIT_OPEN,
            f"circuit breaker open after {failures}; {advice}",
            detail={"retry_after": round(wait, 3)},
        )
