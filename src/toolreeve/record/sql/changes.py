"""File changes noted for undo, in SQL (`record.changes.ChangeTable`)."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from toolreeve.core import json
from toolreeve.core.files import Change
from toolreeve.record.changes import ChangeOwner, NotedChange
from toolreeve.record.sql.connection import SqlConnection, TableEngine, placeholders


class SqlChanges:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def note(self, change: Change, *, call_id: str, session: str, owner: ChangeOwner, at: float) -> int:
        row = (call_id, session, owner.user, owner.session or "", at, json.dumps(dataclasses.asdict(change)))
        return await self._engine.transact(partial(_note, row=row))

    async def standing(
        self, *, call_id: str | None, session: str | None, owner: ChangeOwner | None = None
    ) -> Sequence[NotedChange]:
        return await self._engine.read(partial(_standing, call_id=call_id, session=session, owner=owner))

    def read_standing(
        self, *, call_id: str | None, session: str | None, owner: ChangeOwner | None = None
    ) -> Sequence[NotedChange]:
        if not self._engine.has_begun:
            return []
        return self._engine.read_blocking(partial(_standing, call_id=call_id, session=session, owner=owner))

    async def mark_undone(self, number: int) -> None:
        await self._engine.transact(partial(_mark_undone, number=number))

    async def last_calls(self, count: int) -> Sequence[str]:
        return await self._engine.read(partial(_last_calls, count=count))

    async def states(self, call_ids: Sequence[str]) -> Mapping[str, bool]:
        return await self._engine.read(partial(_states, call_ids=call_ids))

    async def recent(self, count: int) -> Sequence[Change]:
        return await self._engine.read(partial(_recent, count=count))

    async def forget(self, *, before: float, sizes: Mapping[str, int], most_bytes: int) -> set[str]:
        return await self._engine.transact(partial(_forget, before=before, sizes=sizes, most_bytes=most_bytes))


def _note(database: SqlConnection, *, row: tuple[str, str, str, str, float, bytes]) -> int:
    columns = "call_id, session, user, owner, at, change"
    added = database.execute(f"INSERT INTO undo ({columns}) VALUES (?, ?, ?, ?, ?, ?) RETURNING id", row)  # noqa: S608
    return int(added.fetchone()[0])


def _standing(
    database: SqlConnection, *, call_id: str | None, session: str | None, owner: ChangeOwner | None
) -> list[NotedChange]:
    wanted = {"call_id": call_id} if call_id is not None else {"session": session}
    if owner is not None:
        wanted["user"] = owner.user
        if owner.session is not None:
            wanted["owner"] = owner.session
    conditions = " AND ".join(f"{column} = :{column}" for column in wanted)
    query = f"SELECT id, change FROM undo WHERE {conditions} AND undone = 0 ORDER BY id DESC"  # noqa: S608
    return [NotedChange(id=number, change=_parse(body)) for number, body in database.execute(query, wanted)]


def _mark_undone(database: SqlConnection, *, number: int) -> None:
    database.execute("UPDATE undo SET undone = 1 WHERE id = ?", (number,))


def _last_calls(database: SqlConnection, *, count: int) -> list[str]:
    query = "SELECT call_id FROM undo WHERE undone = 0 AND session != '' GROUP BY call_id ORDER BY max(id) DESC LIMIT ?"
    return [call_id for (call_id,) in database.execute(query, (count,))]


def _states(database: SqlConnection, *, call_ids: Sequence[str]) -> dict[str, bool]:
    if not call_ids:
        return {}
    wanted = placeholders(len(call_ids))
    query = f"SELECT call_id, min(undone) FROM undo WHERE call_id IN ({wanted}) GROUP BY call_id"  # noqa: S608
    return {call_id: bool(undone) for call_id, undone in database.execute(query, call_ids)}


def _recent(database: SqlConnection, *, count: int) -> list[Change]:
    rows = database.execute("SELECT change FROM undo ORDER BY id DESC LIMIT ?", (count,))
    return [_parse(body) for (body,) in rows]


def _forget(database: SqlConnection, *, before: float, sizes: Mapping[str, int], most_bytes: int) -> set[str]:
    database.lock("undo")
    database.execute("DELETE FROM undo WHERE at < ?", (before,))
    needed: set[str] = set()
    total = 0
    for number, body in database.execute("SELECT id, change FROM undo ORDER BY id DESC").fetchall():
        digest = (_parse(body).before or "").removeprefix("sha256:")
        if digest not in needed:
            total += sizes.get(digest, 0)
        if total > most_bytes:
            database.execute("DELETE FROM undo WHERE id <= ?", (number,))
            break
        needed.add(digest)
    return needed


def _parse(body: bytes) -> Change:
    fields: dict[str, Any] = json.loads(body)
    return Change(**fields | {"made": tuple(fields["made"])})
