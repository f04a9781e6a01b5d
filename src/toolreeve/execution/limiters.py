"""Limiters: what admission consults, as protocols, with their state in this process.

Another implementation shares the same state between processes or machines; the road does not notice. Budgets and rates
are in the database already.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolreeve.core.action import Action
from toolreeve.core.limits import CircuitBreaker, RateLimit
from toolreeve.core.result import Output
from toolreeve.execution.breaker import Breaker
from toolreeve.execution.cache import Cache

Release = Callable[[], None]


class Concurrency(Protocol):
    limits_all: bool
    """Whether calls are limited that have no limit of their own."""

    async def acquire(self, tool: str, limit: int | None) -> Release:
        """Wait for a place among the calls of this tool and among all calls; the result gives it back."""
        ...

    def forget(self, tool: str) -> None: ...


class CacheSlot(Protocol):
    """The place of one call's result, with the `output` found there."""

    output: Output | None

    async def store(self, output: Output) -> None: ...


class Caches(Protocol):
    async def open(self, action: Action) -> CacheSlot | None:
        """None if results of this tool are not cached."""

    def forget(self, tool: str) -> None: ...


class BreakerTicket(Protocol):
    async def leave(self, *, failed: bool, completed: bool) -> None:
        """`completed` is False for a call that was cancelled or refused: it says nothing about the tool."""


class Breakers(Protocol):
    async def enter(self, tool: str, settings: CircuitBreaker) -> BreakerTicket:
        """Raises ToolError(CIRCUIT_OPEN)."""
        ...

    def states(self) -> Mapping[str, str]:
        """By tool."""
        ...

    def forget(self, tool: str) -> None: ...


class Rates(Protocol):
    async def take(self, key: str, limit: RateLimit, now: float) -> float:
        """Seconds to wait; 0.0 means admitted and counted."""
        ...


class Budgets(Protocol):
    async def reserve(self, scope: str, amount: float, limit: float | None) -> bool: ...

    async def settle(self, scope: str, reserved: float, actual: float) -> None: ...

    async def spent(self, scope: str) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limiters:
    concurrency: Concurrency
    caches: Caches
    breakers: Breakers
    rates: Rates
    budgets: Budgets

    def forget(self, tool: str) -> None:
        """Drop the state of a tool that was replaced: it says nothing about the new one."""
        for part in (self.concurrency, self.caches, self.breakers):
            part.forget(tool)


class LocalConcurrency:
    def __init__(self, limit: int | None) -> None:
        self.limits_all = bool(limit)
        self._all = asyncio.Semaphore(limit) if limit else None
        self._each: dict[str, asyncio.Semaphore] = {}

    async def acquire(self, tool: str, limit: int | None) -> Release:
        if self._all is not None and not limit:
            await self._all.acquire()
            return self._all.release
        held: list[asyncio.Semaphore] = []

        def release() -> None:
            for semaphore in held:
                semaphore.release()

        each = self._each.setdefault(tool, asyncio.Semaphore(limit)) if limit else None
        try:
            for semaphore in (each, self._all):
                if semaphore is not None:
                    await semaphore.acquire()
                    held.append(semaphore)
        except BaseException:
            release()
            raise
        return release

    def forget(self, tool: str) -> None:
        self._each.pop(tool, None)


@dataclass(slots=True)
class LocalSlot:
    """Keeps its own cache: the result of a tool that was replaced meanwhile is not served for the new one."""

    cache: Cache
    key: str
    now: Callable[[], float]
    output: Output | None

    async def store(self, output: Output) -> None:
        self.cache.put(self.key, output, self.now())


class LocalCaches:
    """`now` is monotonic."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._caches: dict[str, Cache] = {}

    async def open(self, action: Action) -> LocalSlot | None:
        settings = action.spec.limits.caching
        if settings is None or not settings.enabled:
            return None
        cache = self._caches.get(action.spec.name)
        if cache is None:
            cache = self._caches[action.spec.name] = Cache(settings)
        key = cache.key(action)
        return LocalSlot(cache, key, self._now, cache.get(key, self._now()))

    def forget(self, tool: str) -> None:
        self._caches.pop(tool, None)


@dataclass(frozen=True, slots=True)
class LocalTicket:
    breaker: Breaker
    number: int
    now: Callable[[], float]

    async def leave(self, *, failed: bool, completed: bool) -> None:
        self.breaker.leave(self.number, self.now(), failed=failed, completed=completed)


class LocalBreakers:
    """`now` is monotonic."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._breakers: dict[str, Breaker] = {}

    async def enter(self, tool: str, settings: CircuitBreaker) -> LocalTicket:
        breaker = self._breakers.get(tool)
        if breaker is None:
            breaker = self._breakers[tool] = Breaker(settings)
        return LocalTicket(breaker, breaker.enter(self._now()), self._now)

    def states(self) -> Mapping[str, str]:
        now = self._now()
        return {tool: str(breaker.state(now)) for tool, breaker in self._breakers.items()}

    def forget(self, tool: str) -> None:
        self._breakers.pop(tool, None)
