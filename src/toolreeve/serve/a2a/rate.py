"""Request rates of A2A callers, per user and minute, told in headers."""

import math
from collections.abc import Callable
from dataclasses import dataclass

WINDOW = 60.0
TOO_MANY = "too many requests of this user in a minute (a2a.requests_per_minute)"
MAX_USERS = 10_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """`left` is -1 for a request too many; `reset` is in seconds."""

    limit: int
    left: int
    reset: int

    @property
    def is_exceeded(self) -> bool:
        return self.left < 0

    def headers(self) -> dict[str, str]:
        shown = {"limit": self.limit, "remaining": max(self.left, 0), "reset": self.reset}
        headers = {f"x-ratelimit-{name}": str(value) for name, value in shown.items()}
        return {**headers, "retry-after": str(self.reset)} if self.is_exceeded else headers


class RequestRates:
    """`limit` 0 allows everything."""

    def __init__(self, limit: int, now: Callable[[], float]) -> None:
        self._limit = limit
        self._now = now
        self._windows: dict[str, tuple[float, int]] = {}

    def take(self, user: str) -> Allowance | None:
        if not self._limit:
            return None
        now = self._now()
        start, count = self._windows.get(user, (now, 0))
        if not 0 <= now - start < WINDOW:
            start, count = now, 0
        if count < self._limit:
            count += 1
            left = self._limit - count
        else:
            left = -1
        self._remember(user, (start, count))
        return Allowance(self._limit, left, math.ceil(start + WINDOW - now))

    def _remember(self, user: str, window: tuple[float, int]) -> None:
        if len(self._windows) >= MAX_USERS and user not in self._windows:
            self._windows.pop(next(iter(self._windows)))
        self._windows[user] = window
