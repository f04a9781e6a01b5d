"""Retry: whether to repeat a failed call, and after which back-off.

Pure: the caller supplies the random number. A call that may have happened is never repeated unless repeating it does no
harm.
"""

from toolreeve.core.action import Action
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import Retry

# Failures that are reported before any work is done: nothing has happened yet.
NOT_BEGUN = frozenset({ErrorCode.RATE_LIMITED, ErrorCode.CIRCUIT_OPEN})


def may_repeat(error: ToolError, action: Action) -> bool:
    """Whether another attempt could help and cannot do the same thing twice."""
    if not error.retryable:
        return False
    return action.read_only or action.spec.idempotent or error.code in NOT_BEGUN


def delay(retry: Retry, attempt: int, random: float) -> float:
    """Seconds to wait after attempt number `attempt` failed.

    `random` lies in [0, 1). With jitter the wait is between half and all of the back-off, so that callers that failed
    together do not retry together, yet none retries at once.
    """
    backoff = min(_backoff(retry, attempt), retry.max_delay)
    return backoff * (0.5 + random / 2) if retry.jitter else backoff


def _backoff(retry: Retry, attempt: int) -> float:
    match retry.backoff:
        case "fixed":
            return retry.initial_delay
        case "linear":
            return retry.initial_delay * attempt
        case "exponential":
            return _exponential(retry.initial_delay, retry.backoff_multiplier, attempt - 1)


def _exponential(initial: float, multiplier: float, times: int) -> float:
    try:
        return initial * multiplier**times
    except OverflowError:
        return float("inf")
