"""Runs of agents in SQL (`record.agent_runs.AgentRunTable`)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from toolreeve.record.agent_runs import AgentRunRow
from toolreeve.record.sql.connection import SqlConnection, TableEngine


class SqlAgentRuns:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def begin(self, row: AgentRunRow) -> None:
        values = (row.id, row.user, row.workspace, row.session, row.model, row.question, row.began)
        await self._engine.transact(partial(_execute, statement=_BEGIN, values=values))

    async def add_messages(self, run: str, first: int, messages: Sequence[bytes]) -> None:
        rows = [(run, number, body) for number, body in enumerate(messages, first)]
        await self._engine.transact(partial(_execute_many, statement=_ADD, rows=rows))

    async def end(self, run: str, *, ended: float, stop: str, steps: int, cost: float) -> None:
        values = (ended, stop, steps, cost, run)
        await self._engine.transact(partial(_execute, statement=_END, values=values))

    async def recent(self, user: str, limit: int) -> Sequence[AgentRunRow]:
        return await self._engine.read(partial(_rows, statement=_RECENT, values=(user, limit)))

    async def find(self, user: str, prefix: str) -> Sequence[AgentRunRow]:
        return await self._engine.read(partial(_rows, statement=_FIND, values=(user, len(prefix), prefix)))

    async def messages(self, run: str) -> Sequence[bytes]:
        return await self._engine.read(partial(_messages, run=run))


def _execute(database: SqlConnection, *, statement: str, values: tuple[Any, ...]) -> None:
    database.execute(statement, values)


def _execute_many(database: SqlConnection, *, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    database.executemany(statement, rows)


def _rows(database: SqlConnection, *, statement: str, values: tuple[Any, ...]) -> list[AgentRunRow]:
    return [AgentRunRow(**dict(zip(_COLUMNS, row, strict=True))) for row in database.execute(statement, values)]


def _messages(database: SqlConnection, *, run: str) -> list[bytes]:
    return [bytes(body) for (body,) in database.execute(_MESSAGES, (run,))]


_COLUMNS = ("id", "user", "workspace", "session", "model", "question", "began", "ended", "stop", "steps", "cost")
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM agent_runs"  # noqa: S608 - names of our own
_BEGIN = (
    "INSERT INTO agent_runs (id, user, workspace, session, model, question, began) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET ended = NULL, stop = '', model = excluded.model"
)
_ADD = "INSERT INTO agent_messages (run, number, body) VALUES (?, ?, ?)"
_END = "UPDATE agent_runs SET ended = ?, stop = ?, steps = steps + ?, cost = cost + ? WHERE id = ?"
_RECENT = f"{_SELECT} WHERE user = ? ORDER BY began DESC LIMIT ?"
_FIND = f"{_SELECT} WHERE user = ? AND substr(id, 1, ?) = ? ORDER BY began DESC LIMIT 3"
_MESSAGES = "SELECT body FROM agent_messages WHERE run = ? ORDER BY number"
