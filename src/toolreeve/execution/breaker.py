"""Is the tool well enough to be called? Closed, open or half-open, from what happened to earlier calls.

Pure: time is passed in. Only the calls of the present state count: a call that began before the breaker opened says
nothing about a probe, however late it ends.
"""

from collections import deque
from enum import StrEnum

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
    }
)


def counts_as_failure(problem: BaseException) -> bool:
    """Whether the tool itself failed: not a refusal, not wrong arguments, not a missing file, not a cancellation."""
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

    def state(self, now: float) -> BreakerState:
        if self._opened is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._rest(now) > 0 and not self._probing else BreakerState.HALF_OPEN

    def enter(self, now: float) -> int:
        """A ticket to hand back to `leave`. Raises ToolError(CIRCUIT_OPEN) while the tool rests or is being probed."""
        if self._opened is None:
            return self._epoch
        if self._probing:
            raise self._refusal("one call is finding out whether it works again", 1.0)
        if (rest := self._rest(now)) > 0:
            raise self._refusal(f"try again in {rest:.1f} s", rest)
        self._probing = True
        self._epoch += 1
        return self._epoch

    def leave(self, ticket: int, now: float, *, failed: bool, completed: bool) -> None:
        """`completed` is False for a call that was cancelled or refused on the way: it says nothing about the tool."""
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

    def _rest(self, now: float) -> float:
        return 0.0 if self._opened is None else self._opened + self._settings.recovery_timeout - now

    def _refusal(self, advice: str, wait: float) -> ToolError:
        times, period = self._settings.failure_threshold, self._settings.monitoring_period
        return ToolError(
            ErrorCode.CIRCUIT_OPEN,
            f"the tool failed {times} times within {period:g} s and is resting; {advice}",
            detail={"retry_after": round(wait, 3)},
        )
