"""JSON values that several gateways change, by key, in PostgreSQL."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from toolreeve.core import json
from toolreeve.record.sql.connection import SqlConnection, TableEngine

T = TypeVar("T")
Change = Callable[[Any], tuple[Any, T]]


class PostgresSharedState:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def change(self, key: str, change: Change[T]) -> T:
        """`change` gets the value, None at first, and returns the new one with an answer; it may be called twice.
        Raises ToolError(AUDIT_ERROR) while the database is away."""
        value = await self._engine.read(partial(_value, key=key))
        new, answer = change(value)
        return answer if new == value else await self._engine.transact(partial(_change, key=key, change=change))


def _value(database: SqlConnection, *, key: str) -> Any:
    row = database.execute("SELECT value FROM shared_state WHERE key = ?", (key,)).fetchone()
    return None if row is None else json.loads(row[0])


def _change(database: SqlConnection, *, key: str, change: Change[T]) -> T:
    database.lock(f"shared_state {key}")
    new, answer = change(_value(database, key=key))
    database.execute(_PUT, (key, json.dumps(new)))
    return answer


_PUT = "INSERT INTO shared_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
