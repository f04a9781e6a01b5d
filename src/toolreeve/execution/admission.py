"""Admission control: concurrency, cache, breaker, rate and budget, in this order.

It runs after the decision and before the work. What is taken here is given back here: leaving the passage settles the
budget, informs the breaker and fills the cache.
"""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol

from toolreeve.core.action import Action
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import UNLIMITED, RateLimit
from toolreeve.core.result import Output
from toolreeve.execution.breaker import Breaker, counts_as_failure
from toolreeve.execution.cache import Cache


class BudgetLedger(Protocol):
    """Budgets and rates, which survive a restart and hold across processes."""

    async def reserve(self, scope: str, amount: float, limit: float | None) -> bool: ...

    async def settle(self, scope: str, reserved: float, actual: float) -> None: ...

    async def spent(self, scope: str) -> float: ...

    async def take(self, key: str, limit: RateLimit, now: float) -> float: ...


class BudgetLimit(Protocol):
    """The limit that calls are charged against; `spent` is what policy sees of it."""

    limit: float
    spent: float
    scope: str


class Admission:
    """`now` is monotonic, for breakers and caches; `today` is wall-clock time, which rates need across processes."""

    def __init__(
        self,
        ledger: BudgetLedger,
        budget: Callable[[], BudgetLimit | None],
        *,
        now: Callable[[], float],
        today: Callable[[], float],
        concurrency: int | None = None,
    ) -> None:
        self.ledger = ledger
        self.budget = budget
        self.now = now
        self.today = today
        self.breakers: dict[str, Breaker] = {}
        self.caches: dict[str, Cache] = {}
        self._all = asyncio.Semaphore(concurrency) if concurrency else None
        self._common = FREE if self._all is None else QueuedPassage(self._all)
        self._each: dict[str, asyncio.Semaphore] = {}

    def admit(self, action: Action, *, may_overspend: bool = False) -> "Passage":
        """Enter with `async with`; refused with CIRCUIT_OPEN, RATE_LIMITED or BUDGET."""
        if action.spec.limits is not UNLIMITED or action.cost:
            return GuardedPassage(self, action, may_overspend=may_overspend)
        return self._common

    def forget(self, name: str) -> None:
        """Drop the state of a tool that was replaced: it says nothing about the new one."""
        for kept in (self.breakers, self.caches, self._each):
            kept.pop(name, None)

    def breaker(self, action: Action) -> Breaker | None:
        settings = action.spec.limits.circuit_breaker
        if settings is not None and action.spec.name not in self.breakers:
            self.breakers[action.spec.name] = Breaker(settings)
        return self.breakers.get(action.spec.name)

    def cache(self, action: Action) -> Cache | None:
        settings = action.spec.limits.caching
        if settings is not None and settings.enabled and action.spec.name not in self.caches:
            self.caches[action.spec.name] = Cache(settings)
        return self.caches.get(action.spec.name)

    def semaphores(self, action: Action) -> list[asyncio.Semaphore]:
        limit = action.spec.limits.concurrency
        each = self._each.setdefault(action.spec.name, asyncio.Semaphore(limit)) if limit else None
        return [semaphore for semaphore in (each, self._all) if semaphore is not None]


class Passage:
    """Admission without limits. `output` is set on entry when the result comes from the cache."""

    output: Output | None = None

    async def __aenter__(self) -> "Passage":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def done(self, output: Output) -> None:
        """The work succeeded with this output."""


FREE = Passage()


class QueuedPassage(Passage):
    """Only concurrency is limited. Stateless, so one is shared by all calls."""

    def __init__(self, semaphore: asyncio.Semaphore) -> None:
        self._semaphore = semaphore

    async def __aenter__(self) -> "Passage":
        await self._semaphore.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._semaphore.release()


class GuardedPassage(Passage):
    def __init__(self, admission: Admission, action: Action, *, may_overspend: bool) -> None:
        self._admission = admission
        self._action = action
        self._may_overspend = may_overspend
        self._held: list[asyncio.Semaphore] = []
        self._breaker: Breaker | None = None
        self._ticket = 0
        self._key = ""
        self._reserved = 0.0
        self._charged: BudgetLimit | None = None
        self._result: Output | None = None

    async def __aenter__(self) -> "Passage":
        try:
            await self._enter()
        except BaseException as problem:
            await self._leave(problem, ran=False)
            raise
        return self

    async def _enter(self) -> None:
        admission = self._admission
        action = self._action
        for semaphore in admission.semaphores(action):
            await semaphore.acquire()
            self._held.append(semaphore)
        if (cache := admission.cache(action)) is not None:
            self._key = cache.key(action)
            self.output = cache.get(self._key, admission.now())
            if self.output is not None:
                return
        if breaker := admission.breaker(action):
            self._ticket = breaker.enter(admission.now())
            self._breaker = breaker
        if rate := action.spec.limits.rate:
            await self._take(rate)
        if action.cost and (budget := admission.budget()) is not None:
            await _finish(self._reserve(action.cost, budget))

    async def _take(self, rate: RateLimit) -> None:
        action = self._action
        key = f"{action.spec.name}:{action.call.principal.user}"
        wait = await self._admission.ledger.take(key, rate, self._admission.today())
        if wait > 0:
            raise ToolError(
                ErrorCode.RATE_LIMITED,
                f"{action.spec.name!r} may run {rate.calls} times in {rate.per:g} s; try again in {wait:.1f} s",
                detail={"retry_after": round(wait, 3)},
            )

    async def _reserve(self, cost: float, budget: BudgetLimit) -> None:
        ledger = self._admission.ledger
        if not await ledger.reserve(budget.scope, cost, None if self._may_overspend else budget.limit):
            spent = budget.spent = await ledger.spent(budget.scope)
            left = max(0.0, budget.limit - spent)
            raise ToolError(
                ErrorCode.BUDGET,
                f"Budget exceeded: ${spent:.2f} spent, ${left:.2f} remaining, tool needs ${cost:.2f}",
            )
        self._reserved = cost
        self._charged = budget
        budget.spent += cost

    def done(self, output: Output) -> None:
        self._result = output

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(self._leave(problem, ran=self.output is None))

    async def _leave(self, problem: BaseException | None, *, ran: bool) -> None:
        now = self._admission.now()
        for semaphore in self._held:
            semaphore.release()
        if self._breaker:
            failed = ran and problem is not None and counts_as_failure(problem)
            completed = ran and (failed or problem is None)
            self._breaker.leave(self._ticket, now, failed=failed, completed=completed)
        if self._result is not None and (cache := self._admission.cache(self._action)) is not None:
            cache.put(self._key, self._result, now)
        if self._charged is not None:
            await self._settle(self._charged, ran=ran)

    async def _settle(self, budget: BudgetLimit, *, ran: bool) -> None:
        """A call that ran is charged its stated cost, or else the estimate; one that never began costs nothing."""
        actual = 0.0
        if ran:
            stated = self._result.cost if self._result else None
            actual = self._reserved if stated is None else stated
        await self._admission.ledger.settle(budget.scope, self._reserved, actual)
        budget.spent += actual - self._reserved


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end even if cancelled: only then is it known whether a reservation must be given back."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        task.exception()  # retrieved: the caller is gone, so a refusal does not matter
        raise
