"""Budgets and rate limits in the database, valid across processes and restarts.

A reservation counts as spent at once; settling corrects it by the difference. A crash in between leaves it counted,
so a budget may be underused, never overspent. Amounts are whole millionths of a dollar, so that no rounding adds up.
"""

import math
from typing import Protocol

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.limits import RateLimit

MICROS = 1_000_000
MAX_AMOUNT = 1e9


class BudgetTable(Protocol):
    """Each method is one transaction. Amounts are in millionths."""

    async def reserve(self, scope: str, cost: int, most: int | None) -> bool:
        """Whether `cost` fits under `most`; if so it is now counted."""
        ...

    async def adjust(self, scope: str, difference: int) -> None:
        """Never below zero."""

    async def spent(self, scope: str) -> int: ...

    async def take(self, key: str, limit: RateLimit, now: float) -> float:
        """Seconds to wait; 0.0 means admitted and counted."""
        ...


class BudgetStore:
    def __init__(self, table: BudgetTable) -> None:
        self._table = table

    async def reserve(self, scope: str, amount: float, limit: float | None) -> bool:
        """Whether `amount` fits under `limit`; if so it is now counted. Without a limit it always fits."""
        cost = charge(amount)
        most = None if limit is None else ceiling(limit)
        return await self._table.reserve(scope, cost, most)

    async def settle(self, scope: str, reserved: float, actual: float) -> None:
        """Replace a reservation by the actual cost, which may be higher."""
        difference = charge(actual) - charge(reserved)
        if difference:
            await self._table.adjust(scope, difference)

    async def spent(self, scope: str) -> float:
        """Dollars, reservations included."""
        return await self._table.spent(scope) / MICROS

    async def take(self, key: str, limit: RateLimit, now: float) -> float:
        """Seconds to wait; 0.0 means admitted and counted. `now` is wall-clock time, which all processes share."""
        return await self._table.take(key, limit, now)


def charge(amount: float) -> int:
    """In millionths, rounded up so that tiny costs are never free; a float's rounding error does not count."""
    if not 0 <= amount <= MAX_AMOUNT:
        raise ToolreeveError(f"a cost must lie between $0 and ${MAX_AMOUNT:,.0f}, got {amount!r}")
    return math.ceil(round(amount * MICROS, 3))


def ceiling(limit: float) -> int:
    if math.isnan(limit) or limit < 0:
        raise ToolreeveError(f"a budget limit must be $0 or more, got {limit!r}")
    return math.floor(round(min(limit, MAX_AMOUNT) * MICROS, 3))
