"""The record in PostgreSQL, filtered and paged by index (`record.audit.AuditTable`)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from toolreeve.record.audit import BLOCK_BITS, AuditRecord, Filter, Range, ranges_of, read_body
from toolreeve.record.chain import HIGHEST
from toolreeve.record.sql.connection import SqlConnection, TableEngine

CHUNK = 1_000


class PostgresAudit:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def page(self, wanted: Filter, *, before: int | None, limit: int) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(_page, wanted=wanted, before=before, limit=limit))

    async def chunk(self, wanted: Filter, *, after: int) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(_chunk, wanted=wanted, after=after))

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


def _page(database: SqlConnection, *, wanted: Filter, before: int | None, limit: int) -> Sequence[AuditRecord]:
    high = HIGHEST if before is None else before - 1
    return _select(database, wanted, reversed(_ranges(database, wanted, (0, high))), order="DESC", limit=limit)


def _chunk(database: SqlConnection, *, wanted: Filter, after: int) -> Sequence[AuditRecord]:
    return _select(database, wanted, _ranges(database, wanted, (after + 1, HIGHEST)), order="ASC", limit=CHUNK)


def _ranges(database: SqlConnection, wanted: Filter, whole: Range) -> list[Range]:
    """The ranges of records within `whole` where some may have a time that is wanted, in order."""
    if wanted.since is None and wanted.until is None:
        return [whole]
    values = {
        "since": -math.inf if wanted.since is None else wanted.since,
        "until": math.inf if wanted.until is None else wanted.until,
        "first": whole[0] >> BLOCK_BITS,
        "last": whole[1] >> BLOCK_BITS,
    }
    return ranges_of((block for (block,) in database.execute(_BLOCKS, values)), whole)


def _select(
    database: SqlConnection, wanted: Filter, ranges: Iterable[Range], *, order: str, limit: int
) -> list[AuditRecord]:
    values = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
    given = {name: value for name, value in values.items() if value is not None}
    conditions = " AND ".join(["seq BETWEEN :low AND :high", *(_condition(name, given[name]) for name in given)])
    query = f"WHERE {conditions} ORDER BY seq {order} LIMIT :limit"
    found: list[AuditRecord] = []
    for low, high in ranges:
        if len(found) < limit:
            bounds = {"low": low, "high": high, "limit": limit - len(found)}
            found += _records(database, query=query, values={**given, **bounds})
    return found


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


_BLOCKS = """
    SELECT block FROM audit_blocks WHERE high >= :since AND low < :until AND block BETWEEN :first AND :last
    ORDER BY block
"""
