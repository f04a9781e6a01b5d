"""Try again? And how long to wait first? Pure: the dice are thrown by the caller.

A call that may have happened is never repeated unless repeating it does no harm.
"""

from toolreeve.core.action import Action
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import Retry

# Failures that are told before any work is done: whatever the tool, nothing has happened.
NOT_BEGUN = frozenset({ErrorCode.RATE_LIMITED, ErrorCode.CIRCUIT_OPEN})


def may_repeat(error: ToolError, action: Action) -> bool:
    """Whether another attempt could help and cannot do the same thing twice."""
    if not error.retryable:
        return False
    return action.read_only or action.spec.idempotent or error.code in NOT_BEGUN


def delay(retry: Retry, attempt: int, random: float) -> float:
    """Seconds to wait after attempt number `attempt` failed.

    `random` lies in [0, 1). With jitter the wait is between half and the whole of the back-off, so that callers who
    failed together do not come back together, yet none comes back at once.
    """
    whole = min(_backoff(retry, attempt), retry.max_delay)
    return whole * (0.5 + random / 2) if retry.jitter else whole


def _backoff(retry: Retry, attempt: int) -> float:
    match retry.backoff:
        case "fixed":
            return retry.initial_delay
        case "linear":
            return retry.initial_delay * attempt
        case "exponential":
            return _grown(retry.initial_delay, retry.backoff_multiplier, attempt - 1)


def _grown(initial: float, multiplier: float, times: int) -> float:
    try:
        return initial * multiplier**times
    except OverflowError:
        return float("inf")
