"""Budgets and rate limits in SQL (`record.budget.BudgetTable`)."""

from functools import partial

from toolreeve.core.limits import RateLimit
from toolreeve.record import rate
from toolreeve.record.sql.connection import SqlConnection, TableEngine

UNLIMITED = 2**62


class SqlBudget:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def reserve(self, scope: str, cost: int, most: int | None) -> bool:
        return await self._engine.transact(partial(_reserve, scope=scope, cost=cost, most=most))

    async def adjust(self, scope: str, difference: int) -> None:
        await self._engine.transact(partial(_adjust, scope=scope, difference=difference))

    async def spent(self, scope: str) -> int:
        return await self._engine.read(partial(_spent, scope=scope))

    async def take(self, key: str, limit: RateLimit, now: float) -> float:
        return await self._engine.transact(partial(_take, key=key, limit=limit, now=now))


def _reserve(database: SqlConnection, *, scope: str, cost: int, most: int | None) -> bool:
    database.execute("INSERT INTO budget (scope, spent) VALUES (?, 0) ON CONFLICT DO NOTHING", (scope,))
    taken = database.execute(
        "UPDATE budget SET spent = spent + :cost WHERE scope = :scope AND spent + :cost <= :most",
        {"cost": cost, "scope": scope, "most": UNLIMITED if most is None else most},
    )
    return taken.rowcount == 1


def _adjust(database: SqlConnection, *, scope: str, difference: int) -> None:
    database.execute(_ADJUST, {"difference": difference, "scope": scope})


def _spent(database: SqlConnection, *, scope: str) -> int:
    row = database.execute("SELECT spent FROM budget WHERE scope = ?", (scope,)).fetchone()
    return 0 if row is None else int(row[0])


def _take(database: SqlConnection, *, key: str, limit: RateLimit, now: float) -> float:
    database.lock(f"rate {key}")
    row = database.execute("SELECT state FROM rate WHERE key = ?", (key,)).fetchone()
    state, wait = rate.admit(row[0] if row else b"", now, limit)
    if wait == 0.0:
        database.execute(
            "INSERT INTO rate (key, state) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state",
            (key, state),
        )
    return wait


_ADJUST = """
    UPDATE budget SET spent = CASE WHEN spent + :difference > 0 THEN spent + :difference ELSE 0 END
    WHERE scope = :scope
"""
