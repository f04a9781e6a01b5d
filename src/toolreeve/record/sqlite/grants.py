"""Grants in SQLite, shared by all processes (`core.grants.GrantStore`).

A grant with a number of uses is never used more often, not even by two processes at the same moment.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from json import loads as read  # exact also for integers beyond 64 bits

from toolreeve.core import json
from toolreeve.core.grants import Grant
from toolreeve.record.sqlite.engine import Engine

MOST = 10_000
"""Grants of one user; beyond it the oldest is dropped."""


class SqliteGrants:
    def __init__(self, engine: Engine, now: Callable[[], float]) -> None:
        self._engine = engine
        self._now = now

    async def add(self, grant: Grant) -> None:
        await self._engine.transact(partial(_add, grant=grant, now=self._now()))

    async def find(self, *, user: str, session: str, tool: str) -> Sequence[Grant]:
        values: dict[str, str | float] = {"user": user, "session": session, "tool": tool, "now": self._now()}
        return await self._engine.read(partial(_select, where=_CANDIDATE, values=values))

    async def use(self, grant: Grant) -> bool:
        return await self._engine.transact(partial(_use, id=grant.id, now=self._now()))

    async def list(self) -> Sequence[Grant]:
        return await self._engine.read(partial(_select, where=_LIVE, values={"now": self._now()}))

    async def revoke(self, id: str) -> bool:
        return await self._engine.transact(partial(_revoke, id=id))

    async def revoke_all(self, *, session: str | None = None) -> int:
        return await self._engine.transact(partial(_revoke_all, session=session))


def _add(database: sqlite3.Connection, *, grant: Grant, now: float) -> None:
    database.execute(f"DELETE FROM grants WHERE NOT ({_LIVE})", {"now": now})  # noqa: S608
    database.execute(_INSERT, {name: getattr(grant, name) for name in _NAMES} | {"covers": json.dumps(grant.covers)})
    database.execute(_DROP_OLDEST, {"user": grant.user, "most": MOST})


def _select(database: sqlite3.Connection, *, where: str, values: dict[str, str | float]) -> Sequence[Grant]:
    query = f"SELECT {_COLUMNS} FROM grants WHERE {where} ORDER BY granted_at, id"  # noqa: S608
    rows = [dict(zip(_NAMES, row, strict=True)) for row in database.execute(query, values)]
    return [Grant(**row | {"covers": read(row["covers"])}) for row in rows]


def _use(database: sqlite3.Connection, *, id: str, now: float) -> bool:
    query = f"UPDATE grants SET uses = uses - 1 WHERE id = :id AND {_LIVE}"  # noqa: S608
    return database.execute(query, {"id": id, "now": now}).rowcount == 1


def _revoke(database: sqlite3.Connection, *, id: str) -> bool:
    found = database.execute("SELECT id FROM grants WHERE substr(id, 1, ?) = ? LIMIT 2", (len(id), id)).fetchall()
    if not id or len(found) != 1:
        return False
    return database.execute("DELETE FROM grants WHERE id = ?", found[0]).rowcount == 1


def _revoke_all(database: sqlite3.Connection, *, session: str | None) -> int:
    return database.execute("DELETE FROM grants WHERE ?1 IS NULL OR session = ?1", (session,)).rowcount


_NAMES = (
    "id",
    "scope",
    "user",
    "client",
    "session",
    "tool",
    "digest",
    "covers",
    "granted_by",
    "granted_at",
    "expires",
    "uses",
)
_COLUMNS = ", ".join(_NAMES)
_LIVE = "(expires IS NULL OR expires > :now) AND (uses IS NULL OR uses > 0)"
_CANDIDATE = f"tool = :tool AND user = :user AND session IN ('', :session) AND {_LIVE}"
_INSERT = f"""
    INSERT INTO grants ({_COLUMNS}) VALUES ({", ".join(f":{name}" for name in _NAMES)})
    ON CONFLICT (tool, user, session, client, scope, digest) DO UPDATE SET
        covers = excluded.covers, granted_by = excluded.granted_by, granted_at = excluded.granted_at,
        expires = excluded.expires, uses = excluded.uses
"""  # noqa: S608
_DROP_OLDEST = """
    DELETE FROM grants WHERE id IN (
        SELECT id FROM grants WHERE user = :user ORDER BY granted_at DESC, id DESC LIMIT -1 OFFSET :most
    )
"""
