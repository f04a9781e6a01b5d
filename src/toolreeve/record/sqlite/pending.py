"""Pending approvals and spent nonces in SQLite (`record.pending.PendingTable`)."""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from json import loads as read  # exact also for integers beyond 64 bits
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import Line
from toolreeve.record.pending import ALLOWED, DENIED, EXPIRED, KEPT, PENDING, USED, PendingRow
from toolreeve.record.sqlite.engine import Engine


class SqlitePending:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def file(self, row: PendingRow, *, most: int) -> tuple[PendingRow, bool]:
        return await self._engine.transact(partial(_file, row=row, most=most))

    async def use(self, *, number: str | None, binding: str | None, holder: str, now: float) -> PendingRow | None:
        values = {"number": number, "binding": binding, "holder": holder, "now": now}
        if await self._engine.read(partial(_decided, values=values)) is None:
            return None
        return await self._engine.transact(partial(_use, values=values))

    async def decide(self, number: str, answer: Mapping[str, Any], *, line: Line, now: float) -> bool:
        return await self._engine.transact(partial(self._decide, number=number, answer=answer, line=line, now=now))

    async def find(self, prefix: str, *, now: float) -> PendingRow | None:
        return await self._engine.read(partial(_find, prefix=prefix, now=now))

    async def list(self, *, now: float) -> Sequence[PendingRow]:
        return await self._engine.read(partial(_list, now=now))

    async def consume(self, nonce: str, *, until: float, now: float) -> bool:
        return await self._engine.transact(partial(_consume, nonce=nonce, until=until, now=now))

    def _decide(
        self, database: sqlite3.Connection, *, number: str, answer: Mapping[str, Any], line: Line, now: float
    ) -> bool:
        state = ALLOWED if answer["granted"] is True else DENIED
        if database.execute(_DECIDE, (state, json.dumps(answer), number, now)).rowcount != 1:
            return False
        self._engine.write_lines(database, [line])
        return True


def _row(columns: tuple[Any, ...], now: float) -> PendingRow:
    number, binding, holder, tool, asked, expires, state, question, answer = columns
    return PendingRow(
        id=number,
        binding=binding,
        holder=holder,
        tool=tool,
        asked=asked,
        expires=expires,
        state=EXPIRED if state != USED and expires <= now else state,
        question=read(question),
        answer=None if answer is None else read(answer),
    )


def _file(database: sqlite3.Connection, *, row: PendingRow, most: int) -> tuple[PendingRow, bool]:
    now = row.asked
    database.execute("DELETE FROM approvals WHERE expires < ?", (now - KEPT,))
    same = database.execute(f"SELECT {_COLUMNS} {_OPEN} AND binding = ?", (now, row.holder, row.binding)).fetchone()
    if same is not None:
        return _row(same, now), False
    if database.execute(f"SELECT count(*) {_OPEN}", (now, row.holder)).fetchone()[0] >= most:
        raise ToolError(
            ErrorCode.LIMIT,
            f"Tool {row.tool!r} requires approval, and {most} approvals are pending already",
            suggestions=("answer pending approvals first (`toolreeve approvals`)",),
        )
    question = json.dumps(row.question)
    values = (row.id, row.binding, row.holder, row.tool, row.asked, row.expires, row.state, question, None)
    database.execute(f"INSERT INTO approvals ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608
    return row, True


def _decided(database: sqlite3.Connection, *, values: Mapping[str, Any]) -> PendingRow | None:
    key = "binding = :binding" if values["number"] is None else "id = :number"
    row = database.execute(f"{_DECIDED} AND {key} ORDER BY asked LIMIT 1", values).fetchone()
    return None if row is None else _row(row, values["now"])


def _use(database: sqlite3.Connection, *, values: Mapping[str, Any]) -> PendingRow | None:
    """Found and marked in one transaction: of two callers, one gets it."""
    if (row := _decided(database, values=values)) is not None:
        database.execute(f"UPDATE approvals SET state = '{USED}' WHERE id = ?", (row.id,))  # noqa: S608
    return row


def _find(database: sqlite3.Connection, *, prefix: str, now: float) -> PendingRow | None:
    query = f"SELECT {_COLUMNS} FROM approvals WHERE substr(id, 1, ?) = ? LIMIT 2"  # noqa: S608
    rows = database.execute(query, (len(prefix), prefix)).fetchall()
    return _row(rows[0], now) if prefix and len(rows) == 1 else None


def _list(database: sqlite3.Connection, *, now: float) -> Sequence[PendingRow]:
    rows = database.execute(f"SELECT {_COLUMNS} FROM approvals ORDER BY asked").fetchall()  # noqa: S608
    return [_row(row, now) for row in rows]


def _consume(database: sqlite3.Connection, *, nonce: str, until: float, now: float) -> bool:
    database.execute("DELETE FROM spent_states WHERE until < ?", (now,))
    added = database.execute("INSERT INTO spent_states VALUES (?, ?) ON CONFLICT DO NOTHING", (nonce, until))
    return added.rowcount == 1


_COLUMNS = "id, binding, holder, tool, asked, expires, state, question, answer"
_OPEN = f"FROM approvals WHERE state = '{PENDING}' AND expires > ? AND holder = ?"
_DECIDED = (
    f"SELECT {_COLUMNS} FROM approvals"  # noqa: S608
    f" WHERE state IN ('{ALLOWED}', '{DENIED}') AND expires > :now AND holder = :holder"
)
_DECIDE = f"UPDATE approvals SET state = ?, answer = ? WHERE id = ? AND state = '{PENDING}' AND expires > ?"  # noqa: S608
