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
from toolreeve.execution.breaker import counts_as_failure
from toolreeve.execution.limiters import BreakerTicket, CacheSlot, Limiters, Release


class BudgetLimit(Protocol):
    """The limit that calls are charged against; `spent` is what policy sees of it."""

    limit: float
    spent: float
    scope: str


class Admission:
    """`today` is wall-clock time, which rates need across processes."""

    def __init__(
        self, limiters: Limiters, budget: Callable[[], BudgetLimit | None], *, today: Callable[[], float]
    ) -> None:
        self.limiters = limiters
        self.budget = budget
        self.today = today

    def admit(self, action: Action, *, may_overspend: bool = False) -> "Passage":
        """Enter with `async with`; refused with CIRCUIT_OPEN, RATE_LIMITED or BUDGET."""
        if action.spec.limits is not UNLIMITED or action.cost:
            return GuardedPassage(self, action, may_overspend=may_overspend)
        return QueuedPassage(self.limiters, action) if self.limiters.concurrency.limits_all else FREE


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
    """Only the number of all calls is limited."""

    def __init__(self, limiters: Limiters, action: Action) -> None:
        self._concurrency = limiters.concurrency
        self._tool = action.spec.name

    async def __aenter__(self) -> "Passage":
        self._release = await self._concurrency.acquire(self._tool, None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()


class GuardedPassage(Passage):
    def __init__(self, admission: Admission, action: Action, *, may_overspend: bool) -> None:
        self._admission = admission
        self._action = action
        self._may_overspend = may_overspend
        self._release: Release | None = None
        self._cache: CacheSlot | None = None
        self._breaker: BreakerTicket | None = None
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
        limiters = self._admission.limiters
        action = self._action
        limits = action.spec.limits
        self._release = await limiters.concurrency.acquire(action.spec.name, limits.concurrency)
        self._cache = await limiters.caches.open(action)
        if self._cache is not None and self._cache.output is not None:
            self.output = self._cache.output
            return
        if limits.circuit_breaker is not None:
            self._breaker = await limiters.breakers.enter(action.spec.name, limits.circuit_breaker)
        if limits.rate is not None:
            await self._take(limits.rate)
        if action.cost and (budget := self._admission.budget()) is not None:
            await _finish(self._reserve(action.cost, budget))

    async def _take(self, rate: RateLimit) -> None:
        action = self._action
        key = f"{action.spec.name}:{action.call.principal.user}"
        wait = await self._admission.limiters.rates.take(key, rate, self._admission.today())
        if wait > 0:
            raise ToolError(
                ErrorCode.RATE_LIMITED,
                f"{action.spec.name!r} may run {rate.calls} times in {rate.per:g} s; try again in {wait:.1f} s",
                detail={"retry_after": round(wait, 3)},
            )

    async def _reserve(self, cost: float, budget: BudgetLimit) -> None:
        budgets = self._admission.limiters.budgets
        if not await budgets.reserve(budget.scope, cost, None if self._may_overspend else budget.limit):
            spent = budget.spent = await budgets.spent(budget.scope)
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
        if self._release is not None:
            self._release()
        if self._breaker is not None:
            failed = ran and problem is not None and counts_as_failure(problem)
            completed = ran and (failed or problem is None)
            await self._breaker.leave(failed=failed, completed=completed)
        if self._result is not None and self._cache is not None:
            await self._cache.store(self._result)
        if self._charged is not None:
            await self._settle(self._charged, ran=ran)

    async def _settle(self, budget: BudgetLimit, *, ran: bool) -> None:
        """A call that ran is charged its stated cost, or else the estimate; one that never began costs nothing."""
        actual = 0.0
        if ran:
            stated = self._result.cost if self._result else None
            actual = self._reserved if stated is None else stated
        await self._admission.limiters.budgets.settle(budget.scope, self._reserved, actual)
        budget.spent += actual - self._reserved
        self._action.spent += actual


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end even if cancelled: only then is it known whether a reservation must be given back."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        task.exception()  # retrieved: the caller is gone, so a refusal does not matter
        raise
