"""The record in PostgreSQL, filtered and paged by index (`record.audit.AuditTable`)."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from toolreeve.record.audit import AuditRecord, Filter, read_body
from toolreeve.record.sql.connection import SqlConnection, TableEngine

CHUNK = 1_000


class PostgresAudit:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def page(self, wanted: Filter, *, before: int | None, limit: int) -> Sequence[AuditRecord]:
        more = {"before": before} if before is not None else {}
        return await self._select(wanted, more, order="DESC", limit=limit)

    async def chunk(self, wanted: Filter, *, after: int) -> Sequence[AuditRecord]:
        return await self._select(wanted, {"after": after}, order="ASC", limit=CHUNK)

    async def count_calls(self) -> int:
        query = "SELECT count(*) FROM audit WHERE kind = 'call'"
        return await self._engine.read(lambda database: int(database.execute(query).fetchone()[0]))

    async def hashes(self, seqs: Sequence[int]) -> Mapping[int, str]:
        query = "SELECT seq, encode(hash, 'hex') FROM audit WHERE seq = ANY(CAST(? AS bigint[]))"
        return await self._engine.read(lambda database: dict(database.execute(query, (list(seqs),)).fetchall()))

    async def last(self) -> int:
        query = "SELECT coalesce(max(seq), 0) FROM audit"
        return await self._engine.read(lambda database: int(database.execute(query).fetchone()[0]))

    async def of_call(self, call_id: str) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(_of_call, call_id=call_id))

    async def _select(self, wanted: Filter, more: Mapping[str, int], *, order: str, limit: int) -> list[AuditRecord]:
        values: dict[str, Any] = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
        given = {name: value for name, value in values.items() if value is not None}
        conditions = [_condition(name, value) for name, value in given.items()]
        conditions += [f"seq {'<' if name == 'before' else '>'} :{name}" for name in more]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        query = f"{where} ORDER BY seq {order} LIMIT :limit"
        return await self._engine.read(partial(_records, query=query, values={**given, **more, "limit": limit}))


def _condition(name: str, value: Any) -> str:
    if name == "success":
        return "success" if value else "NOT success"
    return {"since": "ts >= :since", "until": "ts < :until"}.get(name, f"{name} = :{name}")


def _of_call(database: SqlConnection, *, call_id: str) -> Sequence[AuditRecord]:
    found = _records(database, query="WHERE call_id = :call_id ORDER BY seq", values={"call_id": call_id})
    if found or len(call_id) < 6:
        return found
    bounds = (call_id, call_id + "\U0010ffff")
    query = "SELECT DISTINCT call_id FROM audit WHERE call_id >= ? AND call_id < ? LIMIT 2"
    matches = database.execute(query, bounds).fetchall()
    return _of_call(database, call_id=matches[0][0]) if len(matches) == 1 else ()


def _records(database: SqlConnection, *, query: str, values: Mapping[str, Any]) -> list[AuditRecord]:
    rows = database.execute(f"SELECT seq, kind, call_id, body FROM audit {query}", values)  # noqa: S608
    return [AuditRecord(seq=seq, kind=kind, call_id=call_id, body=read_body(body)) for seq, kind, call_id, body in rows]
