"""Budgets and rate limits in SQLite (`record.budget.BudgetTable`)."""

import sqlite3
from functools import partial

from toolreeve.core.limits import RateLimit
from toolreeve.record import rate
from toolreeve.record.sqlite.engine import Engine


class SqliteBudget:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def reserve(self, scope: str, cost: int, most: int | None) -> bool:
        return await self._engine.transact(partial(_reserve, scope=scope, cost=cost, most=most))

    async def adjust(self, scope: str, difference: int) -> None:
        await self._engine.transact(partial(_adjust, scope=scope, difference=difference))

    async def spent(self, scope: str) -> int:
        return await self._engine.read(partial(_spent, scope=scope))

    async def take(self, key: str, limit: RateLimit, now: float) -> float:
        return await self._engine.transact(partial(_take, key=key, limit=limit, now=now))


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
