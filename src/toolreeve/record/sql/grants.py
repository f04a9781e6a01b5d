"""Grants in SQL, shared by all processes (`core.grants.GrantStore`).

A grant with a number of uses is never used more often, not even by two processes at the same moment. What a grant
covers may hold secrets: the record names the grant and the call that it was given for.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from json import loads as read  # exact also for integers beyond 64 bits
from typing import Any

from toolreeve.core import json
from toolreeve.core.grants import Grant
from toolreeve.record.chain import Line
from toolreeve.record.journal import GRANT, VERSION
from toolreeve.record.sql.connection import SqlConnection, TableEngine

MOST = 10_000
"""Grants of one user; beyond it the oldest is dropped."""


class SqlGrants:
    def __init__(self, engine: TableEngine, now: Callable[[], float]) -> None:
        self._engine = engine
        self._now = now

    async def add(self, grant: Grant, *, call_id: str = "") -> None:
        await self._engine.transact(partial(self._add, grant=grant, call_id=call_id, now=self._now()))

    async def find(self, *, user: str, session: str, tool: str, process: str = "") -> Sequence[Grant]:
        values: _Values = {"user": user, "session": session, "tool": tool, "process": process, "now": self._now()}
        return await self._engine.read(partial(_select, where=_CANDIDATE, values=values))

    async def use(self, grant: Grant) -> bool:
        return await self._engine.transact(partial(_use, id=grant.id, now=self._now()))

    async def list(self) -> Sequence[Grant]:
        return await self._engine.read(partial(_select, where=_LIVE, values={"now": self._now()}))

    async def revoke(self, id: str, *, by: str) -> bool:
        work = partial(self._revoke, where="substr(id, 1, length(:id)) = :id", values={"id": id}, by=by, only_one=True)
        return bool(id) and await self._engine.transact(work) == 1

    async def revoke_all(self, *, by: str, session: str | None = None) -> int:
        where = "CAST(:session AS TEXT) IS NULL OR session = :session"
        return await self._engine.transact(partial(self._revoke, where=where, values={"session": session}, by=by))

    async def end(self, process: str) -> None:
        await self._engine.transact(partial(_end, process=process))

    def _add(self, database: SqlConnection, *, grant: Grant, call_id: str, now: float) -> None:
        values = {name: getattr(grant, name) for name in _NAMES} | {"covers": json.dumps(grant.covers)}
        database.lock("grants")
        database.execute(f"DELETE FROM grants WHERE NOT ({_LIVE})", {"now": now})  # noqa: S608
        (id,) = database.execute(_INSERT, values).fetchone()
        database.execute(_DROP_OLDEST, {"user": grant.user, "most": MOST})
        more = {"granted": True, "approved_by": grant.granted_by, "expires": grant.expires, "uses": grant.uses}
        self._engine.write_lines(database, [_line(grant, call_id, {"grant": id} | more, now)])

    def _revoke(
        self, database: SqlConnection, *, where: str, values: "_Values", by: str, only_one: bool = False
    ) -> int:
        now = self._now()
        found = _select(database, where=f"({where}) AND {_LIVE}", values=values | {"now": now})
        if only_one and len(found) != 1:
            return 0
        gone = "DELETE FROM grants WHERE id = ?"
        found = [grant for grant in found if database.execute(gone, (grant.id,)).rowcount == 1]
        lines = [_line(grant, "", {"grant": grant.id, "granted": False, "revoked_by": by}, now) for grant in found]
        self._engine.write_lines(database, lines)
        return len(found)


_Values = dict[str, str | float | None]


def _line(grant: Grant, call_id: str, more: Mapping[str, Any], now: float) -> Line:
    """The audit record of a grant or its revocation."""
    whose = {"session": grant.session, "user": grant.user, "client": grant.client, "tool": grant.tool}
    return GRANT, call_id, {"v": VERSION, "ts": now, **whose, "scope": grant.scope, **more}


def _select(database: SqlConnection, *, where: str, values: _Values) -> Sequence[Grant]:
    query = f"SELECT {_COLUMNS} FROM grants WHERE {where} ORDER BY granted_at, id"  # noqa: S608
    rows = [dict(zip(_NAMES, row, strict=True)) for row in database.execute(query, values)]
    return [Grant(**row | {"covers": read(row["covers"])}) for row in rows]


def _use(database: SqlConnection, *, id: str, now: float) -> bool:
    query = f"UPDATE grants SET uses = uses - 1 WHERE id = :id AND {_LIVE}"  # noqa: S608
    return database.execute(query, {"id": id, "now": now}).rowcount == 1


def _end(database: SqlConnection, *, process: str) -> None:
    database.execute("DELETE FROM grants WHERE process = ? AND process != ''", (process,))


_NAMES = (
    "id",
    "scope",
    "user",
    "client",
    "session",
    "process",
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
_CANDIDATE = f"""
    tool = :tool AND user = :user AND session IN ('', :session) AND process IN ('', :process) AND {_LIVE}
"""
_INSERT = f"""
    INSERT INTO grants ({_COLUMNS}) VALUES ({", ".join(f":{name}" for name in _NAMES)})
    ON CONFLICT (tool, user, session, client, scope, digest) DO UPDATE SET
        covers = excluded.covers, granted_by = excluded.granted_by, granted_at = excluded.granted_at,
        expires = excluded.expires, uses = excluded.uses
    RETURNING id
"""  # noqa: S608
_DROP_OLDEST = """
    DELETE FROM grants WHERE id IN (
        SELECT id FROM grants WHERE user = :user ORDER BY granted_at DESC, id DESC LIMIT 1000000000 OFFSET :most
    )
"""
