"""Tasks of other agents in SQL (`record.tasks.TaskTable`)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from toolreeve.core import json
from toolreeve.record.sql.connection import SqlConnection, TableEngine, placeholders
from toolreeve.record.tasks import TaskQuery, TaskRow

Numbered = tuple[int, bytes]


class SqlTasks:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def add(self, row: TaskRow, events: Sequence[bytes]) -> bool:
        return await self._engine.transact(partial(_add, row=row, events=events))

    async def save(self, row: TaskRow, events: Sequence[bytes], *, after: int) -> bool:
        return await self._engine.transact(partial(_save, row=row, events=events, after=after))

    async def find(self, number: str) -> TaskRow | None:
        return await self._engine.read(partial(_one, statement=f"{_SELECT} WHERE id = ?", values=(number,)))

    async def waiting_for(self, question: str) -> Sequence[TaskRow]:
        statement = f"{_SELECT} WHERE question = ? AND question != '' AND ended = 0 ORDER BY created, id"
        return await self._engine.read(partial(_rows, statement=statement, values=(question,)))

    async def unended(self) -> Sequence[TaskRow]:
        statement = f"{_SELECT} WHERE ended = 0 ORDER BY created, id"
        return await self._engine.read(partial(_rows, statement=statement, values=()))

    async def page(self, query: TaskQuery) -> tuple[Sequence[TaskRow], int]:
        return await self._engine.read(partial(_page, query=query))

    async def events(self, number: str, *, after: int, limit: int = 500) -> Sequence[Numbered]:
        return await self._engine.read(partial(_events, values=(number, after, limit)))

    async def sweep(self, *, before: float) -> int:
        return await self._engine.transact(partial(_sweep, before=before))


def _add(database: SqlConnection, *, row: TaskRow, events: Sequence[bytes]) -> bool:
    if database.execute(_INSERT, _values(row)).rowcount != 1:
        return False
    _log(database, row, events)
    return True


def _save(database: SqlConnection, *, row: TaskRow, events: Sequence[bytes], after: int) -> bool:
    values = (*_values(row)[3:], row.id, after)
    if database.execute(_UPDATE, values).rowcount != 1:
        return False
    _log(database, row, events)
    return True


def _log(database: SqlConnection, row: TaskRow, events: Sequence[bytes]) -> None:
    first = row.last - len(events) + 1
    rows = [(row.id, number, body) for number, body in enumerate(events, first)]
    database.executemany("INSERT INTO task_events (task, number, body) VALUES (?, ?, ?)", rows)


def _one(database: SqlConnection, *, statement: str, values: tuple[Any, ...]) -> TaskRow | None:
    return next(iter(_rows(database, statement=statement, values=values)), None)


def _rows(database: SqlConnection, *, statement: str, values: tuple[Any, ...]) -> list[TaskRow]:
    return [_read(row) for row in database.execute(statement, values)]


def _page(database: SqlConnection, *, query: TaskQuery) -> tuple[list[TaskRow], int]:
    wanted = {
        "owner = ?": query.owner,
        "context = ?": query.context,
        "state = ?": query.state,
        "changed >= ?": query.since,
    }
    chosen = {condition: value for condition, value in wanted.items() if value}
    where = " AND ".join(chosen)
    values = list(chosen.values())
    count = f"SELECT count(*) FROM tasks WHERE {where}"  # noqa: S608 - conditions of our own
    total = int(database.execute(count, values).fetchone()[0])
    if query.before is not None:
        where += " AND (changed, id) < (?, ?)"
        values += query.before
    statement = f"{_SELECT} WHERE {where} ORDER BY changed DESC, id DESC LIMIT ?"
    return _rows(database, statement=statement, values=(*values, query.limit)), total


def _events(database: SqlConnection, *, values: tuple[Any, ...]) -> list[Numbered]:
    return [(number, bytes(body)) for number, body in database.execute(_EVENTS, values)]


def _sweep(database: SqlConnection, *, before: float) -> int:
    old = "SELECT id FROM tasks WHERE ended = 1 AND changed < ?"
    database.execute(f"DELETE FROM task_events WHERE task IN ({old})", (before,))  # noqa: S608 - a statement of our own
    return database.execute("DELETE FROM tasks WHERE ended = 1 AND changed < ?", (before,)).rowcount


def _values(row: TaskRow) -> tuple[Any, ...]:
    turn = json.dumps(row.turn)
    return (
        row.id,
        row.owner,
        row.created,
        row.context,
        row.state,
        row.body,
        turn,
        row.last,
        row.question,
        row.process,
        int(row.ended),
        row.changed,
    )


def _read(row: tuple[Any, ...]) -> TaskRow:
    values = dict(zip(_COLUMNS, row, strict=True))
    changed = {"body": bytes(values["body"]), "turn": json.loads(values["turn"]), "ended": bool(values["ended"])}
    return TaskRow(**values | changed)


_COLUMNS = (
    "id",
    "owner",
    "created",
    "context",
    "state",
    "body",
    "turn",
    "last",
    "question",
    "process",
    "ended",
    "changed",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM tasks"  # noqa: S608 - names of our own
_INSERT = (
    f"INSERT INTO tasks ({', '.join(_COLUMNS)}) VALUES ({placeholders(len(_COLUMNS))}) ON CONFLICT (id) DO NOTHING"  # noqa: S608
)
_UPDATE = f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in _COLUMNS[3:])} WHERE id = ? AND last = ?"  # noqa: S608 - names of our own
_EVENTS = "SELECT number, body FROM task_events WHERE task = ? AND number > ? ORDER BY number LIMIT ?"
