"""Errors of model providers, by what the caller can do about them."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from toolreeve.core.errors import ErrorCode, ToolreeveError

T = TypeVar("T")

FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
ATTEMPTS = 4
LONGEST_MESSAGE = 500


class ModelErrorKind(StrEnum):
    CONFIGURATION = "configuration"
    """No key, a wrong key, an unknown model, a missing package."""
    REJECTED = "rejected"
    """The provider refuses the request as it is."""
    CONTEXT = "context_overflow"
    """The conversation is longer than the model accepts."""
    RATE_LIMIT = "rate_limit"
    UNAVAILABLE = "unavailable"
    """Overload, a network failure, or a response that broke off."""


RETRYABLE = frozenset({ModelErrorKind.RATE_LIMIT, ModelErrorKind.UNAVAILABLE})


class ModelError(ToolreeveError):
    """`retry_after` is the number of seconds that the provider asks to wait, if it says."""

    code = ErrorCode.TOOL_EXEC

    def __init__(self, kind: ModelErrorKind, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after


async def with_retries(turn: Callable[[], Awaitable[T]], draw: Callable[[], float], attempts: int = ATTEMPTS) -> T:
    """Repeat a turn that failed for a passing reason: exponential back-off with jitter, or what the provider asks.

    A turn has no effect before its reply is complete, so repeating it is safe.
    """
    for attempt in range(attempts):
        try:
            return await turn()
        except ModelError as problem:
            if problem.kind not in RETRYABLE or attempt == attempts - 1:
                raise
            delay = FIRST_DELAY * 2**attempt * (0.5 + draw())
            if problem.retry_after is not None:
                delay = problem.retry_after
            if delay > LONGEST_DELAY:
                raise
        await asyncio.sleep(delay)
    raise AssertionError("the last attempt returns or raises")


def from_status(provider: str, status: int, body: Any, headers: Mapping[str, str]) -> ModelError:
    """The error for an HTTP response without success."""
    text = _message(body) or f"HTTP status {status}"
    if _is_overflow(status, text):
        return ModelError(ModelErrorKind.CONTEXT, f"{provider}: the conversation is too long for the model: {text}")
    if status in (401, 403, 404):
        return ModelError(ModelErrorKind.CONFIGURATION, f"{provider}: {text} (HTTP {status})")
    if status == 429:
        message = f"{provider}: rate limit reached: {text}"
        return ModelError(ModelErrorKind.RATE_LIMIT, message, retry_after=_retry_after(headers))
    if status in (408, 409, 425) or status >= 500:
        message = f"{provider} is unavailable: {text} (HTTP {status})"
        return ModelError(ModelErrorKind.UNAVAILABLE, message, retry_after=_retry_after(headers))
    return ModelError(ModelErrorKind.REJECTED, f"{provider} refused the request: {text} (HTTP {status})")


def _message(body: Any) -> str:
    """The providers' envelopes: {"error": {"message": …}}, the inner object alone, or text. On one line, short."""
    if isinstance(body, list) and body:
        body = body[0]
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    text = inner.get("message") if isinstance(inner, Mapping) else inner
    return " ".join(str(text or "")[:LONGEST_MESSAGE].split())


_OVERFLOW = (
    "context_length",
    "context length",
    "context window",
    "prompt is too long",
    "maximum context",
    "token count",
)


def _is_overflow(status: int, text: str) -> bool:
    return status == 413 or (status == 400 and any(sign in text.lower() for sign in _OVERFLOW))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds. A value that is no number of them, such as a date, leaves the delay to the back-off."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            delay = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if 0 <= delay < math.inf:
            return delay
    return None
