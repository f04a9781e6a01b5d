"""Request rates of A2A callers: per user, minute and hour, with headers."""

import math
from collections.abc import Callable
from dataclasses import dataclass

MAX_USERS = 10_000


@dataclass(slots=True)
class WindowCount:
    start: float
    used: int = 0


@dataclass(frozen=True, slots=True)
class RateWindow:
    """`suffix` ends the names of its headers. `setting` is what changes its limit; 0 allows everything."""

    suffix: str
    seconds: float
    limit: int
    setting: str

    def reset(self, count: WindowCount, now: float) -> int:
        return math.ceil(count.start + self.seconds - now)

    def headers(self, count: WindowCount, now: float) -> dict[str, str]:
        told = {"limit": self.limit, "remaining": self.limit - count.used, "reset": self.reset(count, now)}
        return {f"x-ratelimit-{name}{self.suffix}": str(value) for name, value in told.items()}


class RequestRates:
    def __init__(self, per_minute: int, per_hour: int, now: Callable[[], float]) -> None:
        windows = (
            RateWindow("", 60.0, per_minute, "a2a.requests_per_minute"),
            RateWindow("-hour", 3600.0, per_hour, "a2a.requests_per_hour"),
        )
        self._windows = [each for each in windows if each.limit]
        self._now = now
        self._counts: dict[str, list[WindowCount]] = {}

    def take(self, user: str) -> tuple[dict[str, str], str]:
        """The headers of the response, and why the request is refused; empty if it is not. A refused one does not
        count."""
        now = self._now()
        pairs = list(zip(self._windows, self._counts_of(user, now), strict=True))
        full = [(window, count) for window, count in pairs if count.used >= window.limit]
        headers: dict[str, str] = {}
        for window, count in pairs:
            count.used += not full
            headers |= window.headers(count, now)
        if not full:
            return headers, ""
        reset, setting = max((window.reset(count, now), window.setting) for window, count in full)
        refusal = f"too many requests of this user ({setting}); try again in {reset} s"
        return {**headers, "retry-after": str(reset)}, refusal

    def _counts_of(self, user: str, now: float) -> list[WindowCount]:
        """Without those whose time is over."""
        if user not in self._counts:
            if len(self._counts) >= MAX_USERS:
                self._counts.pop(next(iter(self._counts)))
            self._counts[user] = [WindowCount(now) for _ in self._windows]
        counts = self._counts[user]
        for number, window in enumerate(self._windows):
            if not 0 <= now - counts[number].start < window.seconds:
                counts[number] = WindowCount(now)
        return counts
