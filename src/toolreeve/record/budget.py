"""Budgets and rate limits in the database, valid across processes and restarts.

A reservation counts as spent at once; settling corrects it by the difference. A crash in between leaves it counted,
so a budget may be underused, never overspent. Amounts are whole millionths of a dollar, so that no rounding adds up.
"""

import math
import sqlite3
from functools import partial

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.limits import RateLimit
from toolreeve.record import rate
from toolreeve.record.store import Store

MICROS = 1_000_000
MAX_AMOUNT = 1e9


class BudgetStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def reserve(self, scope: str, amount: float, limit: float | None) -> bool:
        """Whether `amount` fits under `limit`; if so it is now counted. Without a limit it always fits."""
        cost = charge(amount)
        most = None if limit is None else ceiling(limit)
        return await self._store.transact(partial(_reserve, scope=scope, cost=cost, most=most))

    async def settle(self, scope: str, reserved: float, actual: float) -> None:
        """Replace a reservation by the actual cost, which may be higher."""
        difference = charge(actual) - charge(reserved)
        if difference:
            await self._store.transact(partial(_adjust, scope=scope, difference=difference))

    async def spent(self, scope: str) -> float:
        """Dollars, reservations included."""
        return await self._store.read(partial(_spent, scope=scope)) / MICROS

    async def take(self, key: str, limit: RateLimit, now: float) -> float:
        """Seconds to wait; 0.0 means admitted and counted. `now` is wall-clock time, which all processes share."""
        return await self._store.transact(partial(_take, key=key, limit=limit, now=now))


def _reserve(database: sqlite3.Connection, *, scope: str, cost: int, most: int | None) -> bool:
    database.execute("INSERT INTO budget (scope, spent) VALUES (?, 0) ON CONFLICT DO NOTHING", (scope,))
    taken = database.execute(
        "UPDATE budget SET spent = spent + :cost WHERE scope = :scope AND (:most IS NULL OR spent + :cost <= :most)",
        {"cost": cost, "scope": scope, "most": most},
    )
    return taken.rowcount == 1


def _adjust(database: sqlite3.Connection, *, scope: str, difference: int) -> None:
    database.execute("UPDATE budget SET spent = max(0, spent + ?) WHERE scope = ?", (difference, scope))


def _spent(database: sqlite3.Connection, *, scope: str) -> int:
    row = database.execute("SELECT spent FROM budget WHERE scope = ?", (scope,)).fetchone()
    return 0 if row is None else int(row[0])


def _take(database: sqlite3.Connection, *, key: str, limit: RateLimit, now: float) -> float:
    row = database.execute("SELECT state FROM rate WHERE key = ?", (key,)).fetchone()
    state, wait = rate.admit(row[0] if row else b"", now, limit)
    if wait == 0.0:
        database.execute(
            "INSERT INTO rate (key, state) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state",
            (key, state),
        )
    return wait


def charge(amount: float) -> int:
    """In millionths, rounded up so that tiny costs are never free; a float's rounding error does not count."""
    if not 0 <= amount <= MAX_AMOUNT:
        raise ToolreeveError(f"a cost must lie between $0 and ${MAX_AMOUNT:,.0f}, got {amount!r}")
    return math.ceil(round(amount * MICROS, 3))


def ceiling(limit: float) -> int:
    if math.isnan(limit) or limit < 0:
        raise ToolreeveError(f"a budget limit must be $0 or more, got {limit!r}")
    return math.floor(round(min(limit, MAX_AMOUNT) * MICROS, 3))
