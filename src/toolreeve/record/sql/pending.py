"""Stored approvals and spent nonces in SQL (`record.pending.PendingTable`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from json import loads as read  # exact also for integers beyond 64 bits
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import Line
from toolreeve.record.pending import KEPT
from toolreeve.record.pending_table import (
    ALLOWED,
    ANSWERED,
    DENIED,
    EDITED,
    EXPIRED,
    PENDING,
    USED,
    ListedRow,
    ListQuery,
    PendingRow,
)
from toolreeve.record.sql.connection import SqlConnection, TableEngine

_Values = Mapping[str, Any]
APPROVALS = "approvals"
"""The lock of every change, so that changes become visible in the order of their numbers; and what announces them."""


class SqlPending:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    def listen(self, wake: Callable[[], None]) -> None:
        self._engine.listen(APPROVALS, wake)

    async def file(
        self, row: PendingRow, *, most: int, reuse: bool, line: Line | None = None
    ) -> tuple[PendingRow, bool]:
        return await self._engine.transact(partial(self._file, row=row, most=most, reuse=reuse, line=line))

    async def use(self, *, number: str | None, binding: str | None, holder: str, now: float) -> PendingRow | None:
        values = {"number": number, "binding": binding, "holder": holder, "now": now}
        if await self._engine.read(partial(_decided, values=values)) is None:
            return None
        return await self._engine.transact(partial(_use, values=values))

    async def decide(
        self, number: str, answer: Mapping[str, Any], *, line: Line, now: float, needed: int, use: bool
    ) -> str:
        work = partial(self._decide, number=number, answer=answer, line=line, now=now, needed=needed, use=use)
        return await self._engine.transact(work)

    async def end(self, number: str, state: str, *, now: float, states: tuple[str, ...]) -> bool:
        query = f"UPDATE approvals SET state = :to, {_CHANGED} WHERE id = :id AND state IN ({_quoted(states)})"  # noqa: S608
        return await self._update(query, {"to": state, "id": number, "now": now})

    async def keep(self, number: str, *, process: str, expires: float, now: float) -> bool:
        values = {"process": process, "expires": expires, "id": number, "now": now}
        return await self._update(_KEEP, values)

    async def mark_shown(self, number: str, *, now: float) -> None:
        query = "UPDATE approvals SET shown = :now WHERE id = :id AND shown IS NULL"
        await self._update(query, {"id": number, "now": now})

    async def find(self, prefix: str, *, now: float) -> PendingRow | None:
        return await self._engine.read(partial(_find, prefix=prefix, now=now))

    async def state(self, number: str, *, now: float) -> str | None:
        return await self._engine.read(partial(_state, number=number, now=now))

    async def page(self, query: ListQuery, *, now: float) -> Sequence[ListedRow]:
        return await self._engine.read(partial(_page, query=query, now=now))

    async def changes(self, since: int, *, limit: int, now: float) -> Sequence[ListedRow]:
        return await self._engine.read(partial(_changes, since=since, limit=limit, now=now))

    async def sweep(self, *, now: float) -> int:
        if not await self._engine.read(partial(_has_expired, now=now)):
            return 0
        return await self._engine.transact(partial(_sweep, now=now))

    async def count(self, *, now: float) -> int:
        query = f"SELECT count(*) FROM approvals WHERE state = '{PENDING}' AND expires > ?"  # noqa: S608
        return await self._engine.read(lambda database: int(database.execute(query, (now,)).fetchone()[0]))

    async def last_change(self) -> int:
        query = "SELECT coalesce(max(changed), 0) FROM approvals"
        return await self._engine.read(lambda database: int(database.execute(query).fetchone()[0]))

    async def record(self, line: Line) -> None:
        await self._engine.transact(lambda database: self._engine.write_lines(database, [line]))

    async def consume(self, nonce: str, *, until: float, now: float) -> bool:
        return await self._engine.transact(partial(_consume, nonce=nonce, until=until, now=now))

    async def _update(self, query: str, values: _Values) -> bool:
        return await self._engine.transact(partial(_update, query=query, values=values))

    def _file(
        self, database: SqlConnection, *, row: PendingRow, most: int, reuse: bool, line: Line | None
    ) -> tuple[PendingRow, bool]:
        now = row.asked
        database.lock(APPROVALS)
        database.execute("DELETE FROM approvals WHERE expires < ?", (now - KEPT,))
        if reuse:
            same = f"SELECT {_COLUMNS} {_OPEN} AND binding = ? AND process = ''"
            found = database.execute(same, (now, row.holder, row.binding)).fetchone()
            if found is not None:
                return _row(found, now), False
        if row.state == PENDING:
            _check_count(database, row, most)
        database.execute(_INSERT, _values(row) | {"now": now})
        database.announce(APPROVALS)
        if line is not None:
            self._engine.write_lines(database, [line])
        return row, True

    def _decide(
        self,
        database: SqlConnection,
        *,
        number: str,
        answer: Mapping[str, Any],
        line: Line,
        now: float,
        needed: int,
        use: bool,
    ) -> str:
        database.lock(APPROVALS)
        found = database.execute(f"{_SELECT} WHERE id = ?", (number,)).fetchone()
        row = None if found is None else _row(found, now)
        if row is None or row.state != PENDING:
            return ""
        votes = [*row.votes, _vote(answer)]
        if answer["granted"] is True and len({vote["approver"] for vote in votes}) < len(votes):
            return "repeated"
        decided = answer["granted"] is not True or len(votes) >= needed
        state = _state_of(answer, use=use) if decided else PENDING
        stored = {**answer, "by": " and ".join(vote["by"] for vote in votes)} if len(votes) > 1 and decided else answer
        values = {
            "state": state,
            "answer": json.dumps(stored) if decided else None,
            "votes": json.dumps(votes if answer["granted"] is True else row.votes),
            "id": number,
            "now": now,
        }
        database.execute(_DECIDE, values)
        database.announce(APPROVALS)
        self._engine.write_lines(database, [line])
        return "decided" if decided else "counted"


def _vote(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {key: answer.get(key) for key in ("by", "approver", "channel", "at")}


def _state_of(answer: Mapping[str, Any], *, use: bool) -> str:
    if use:
        return USED
    if answer["granted"] is not True:
        return DENIED
    return ALLOWED if answer.get("args") is None else EDITED


def _check_count(database: SqlConnection, row: PendingRow, most: int) -> None:
    if database.execute(f"SELECT count(*) {_OPEN}", (row.asked, row.holder)).fetchone()[0] >= most:
        raise ToolError(
            ErrorCode.LIMIT,
            f"Tool {row.tool!r} requires approval, and {most} approvals are pending already",
            suggestions=("answer pending approvals first (`toolreeve approvals`)",),
        )


def _values(row: PendingRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in _NAMES}
    packed = {name: None if values[name] is None else json.dumps(values[name]) for name in _PACKED}
    return values | packed


def _row(columns: tuple[Any, ...], now: float) -> PendingRow:
    values = dict(zip(_NAMES, columns, strict=True))
    values |= {name: None if values[name] is None else read(values[name]) for name in _PACKED}
    row = PendingRow(**values)
    return replace(row, state=_current(row.state, row.expires, now))


def _current(state: str, expires: float, now: float) -> str:
    return EXPIRED if state in (PENDING, *ANSWERED) and expires <= now else state


def _decided(database: SqlConnection, *, values: _Values) -> PendingRow | None:
    key = "binding = :binding" if values["number"] is None else "id = :number"
    row = database.execute(f"{_DECIDED} AND {key} ORDER BY asked LIMIT 1", values).fetchone()
    return None if row is None else _row(row, values["now"])


def _use(database: SqlConnection, *, values: _Values) -> PendingRow | None:
    """Found and marked under one lock: of two callers, one gets it."""
    database.lock(APPROVALS)
    row = _decided(database, values=values)
    if row is None or database.execute(_USE, {"id": row.id, "now": values["now"]}).rowcount != 1:
        return None
    database.announce(APPROVALS)
    return row


def _update(database: SqlConnection, *, query: str, values: _Values) -> bool:
    database.lock(APPROVALS)
    done = database.execute(query, values).rowcount == 1
    database.announce(APPROVALS)
    return done


def _find(database: SqlConnection, *, prefix: str, now: float) -> PendingRow | None:
    rows = database.execute(f"{_SELECT} WHERE id >= ? AND id < ? LIMIT 2", (prefix, f"{prefix}\U0010ffff")).fetchall()
    exact = [row for row in rows if row[0] == prefix]
    found = exact or rows
    return _row(found[0], now) if prefix and len(found) == 1 else None


def _state(database: SqlConnection, *, number: str, now: float) -> str | None:
    found = database.execute("SELECT state, expires FROM approvals WHERE id = ?", (number,)).fetchone()
    return None if found is None else _current(found[0], found[1], now)


def _page(database: SqlConnection, *, query: ListQuery, now: float) -> Sequence[ListedRow]:
    compare, order = ("<", "DESC") if query.newest_first else (">", "ASC")
    after = f" AND (asked, id) {compare} (:asked, :id)" if query.after else ""
    asked, number = query.after or (0.0, "")
    values = {"asked": asked, "id": number, "limit": query.limit}
    end = f"{after} ORDER BY asked {order}, id {order} LIMIT :limit"
    if not query.states:
        return _listed(database, f"TRUE{end}", values, now)
    # One state is one index: each is read in order, and the few rows are merged.
    found = [
        row
        for state in query.states
        for row in _listed(database, f"state = :state{end}", {**values, "state": state}, now)
    ]
    found.sort(key=lambda row: (row.asked, row.id), reverse=query.newest_first)
    return found[: query.limit]


def _listed(database: SqlConnection, where: str, values: _Values, now: float) -> list[ListedRow]:
    rows = database.execute(f"SELECT {_LISTED} FROM approvals WHERE {where}", values)  # noqa: S608
    return [
        ListedRow(
            id=number,
            tool=tool,
            asked=asked,
            expires=expires,
            state=_current(state, expires, now),
            summary=read(summary),
            answer=None if answer is None else read(answer),
            changed=changed,
        )
        for number, tool, asked, expires, state, summary, answer, changed in rows
    ]


def _changes(database: SqlConnection, *, since: int, limit: int, now: float) -> Sequence[ListedRow]:
    return _listed(database, "changed > :since ORDER BY changed LIMIT :limit", {"since": since, "limit": limit}, now)


def _has_expired(database: SqlConnection, *, now: float) -> bool:
    return database.execute(f"SELECT 1 FROM approvals WHERE {_OVERDUE} LIMIT 1", {"now": now}).fetchone() is not None  # noqa: S608


def _sweep(database: SqlConnection, *, now: float) -> int:
    """Each row gets its own place in the order of changes."""
    database.lock(APPROVALS)
    overdue = database.execute(f"SELECT id FROM approvals WHERE {_OVERDUE}", {"now": now}).fetchall()  # noqa: S608
    for (number,) in overdue:
        database.execute(_EXPIRE, {"id": number, "now": now})
    database.announce(APPROVALS)
    return len(overdue)


def _consume(database: SqlConnection, *, nonce: str, until: float, now: float) -> bool:
    database.execute("DELETE FROM spent_states WHERE until < ?", (now,))
    added = database.execute("INSERT INTO spent_states VALUES (?, ?) ON CONFLICT DO NOTHING", (nonce, until))
    return added.rowcount == 1


def _quoted(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


_NAMES = (
    "id",
    "binding",
    "holder",
    "tool",
    "asked",
    "expires",
    "state",
    "question",
    "answer",
    "digest",
    "process",
    "shown",
    "summary",
    "votes",
    "feedback",
    "changed",
)
_PACKED = ("question", "answer", "summary", "votes", "feedback")
_COLUMNS = ", ".join(_NAMES)
_LISTED = "id, tool, asked, expires, state, summary, answer, changed"
_NEXT = """(
    SELECT CASE WHEN highest < CAST(:now * 1000 AS BIGINT) THEN CAST(:now * 1000 AS BIGINT) ELSE highest + 1 END
    FROM (SELECT coalesce(max(changed), 0) AS highest FROM approvals) AS last
)"""
_CHANGED = f"changed = {_NEXT}"
_SELECT = f"SELECT {_COLUMNS} FROM approvals"  # noqa: S608
_OPEN = f"FROM approvals WHERE state = '{PENDING}' AND expires > ? AND holder = ?"
_INSERT = f"""
    INSERT INTO approvals ({_COLUMNS})
    VALUES ({", ".join(f":{name}" for name in _NAMES if name != "changed")}, {_NEXT})
"""  # noqa: S608
_DECIDED = f"{_SELECT} WHERE state IN ({_quoted(ANSWERED)}) AND expires > :now AND holder = :holder"
_DECIDE = f"""
    UPDATE approvals SET state = :state, answer = :answer, votes = :votes, {_CHANGED}
    WHERE id = :id AND state = '{PENDING}'
"""  # noqa: S608
_USE = f"UPDATE approvals SET state = '{USED}', {_CHANGED} WHERE id = :id AND state IN ({_quoted(ANSWERED)})"  # noqa: S608
_KEEP = f"""
    UPDATE approvals SET process = :process, expires = :expires, {_CHANGED}
    WHERE id = :id AND state = '{PENDING}' AND expires > :now
"""  # noqa: S608
_OVERDUE = f"state IN ({_quoted((PENDING, *ANSWERED))}) AND expires <= :now"
_EXPIRE = f"UPDATE approvals SET state = '{EXPIRED}', {_CHANGED} WHERE id = :id"  # noqa: S608
