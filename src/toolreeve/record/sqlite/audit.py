"""The record in SQLite, filtered and paged by index (`record.audit.AuditTable`).

A filter's columns are computed from the body by SQLite itself, so they cannot disagree with what is hashed. Of several
filters, the one with the fewest records leads, and the others are looked up in their own index; what most records hold
is not indexed, and compared last. Times are not in the order of the records, for a record is written when its call
ends: blocks of records without a matching time are skipped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.audit import BLOCK_BITS, AuditRecord, Filter, Range, ranges_of, read_body
from toolreeve.record.sql.connection import SqlConnection, TableEngine, placeholders
from toolreeve.record.sqlite.schema import FREQUENT, INDEX_BOUNDS, INDEXED

CHUNK = 1_000
COUNTED = 10_000
"""Beyond so many records it hardly matters which filter leads."""


class SqliteAudit:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def page(self, wanted: Filter, *, before: int | None, limit: int) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(_page, wanted=wanted, before=before, limit=limit))

    async def chunk(self, wanted: Filter, *, after: int) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(_chunk, wanted=wanted, after=after))

    async def count_calls(self) -> int:
        return await self._engine.read(_count_calls)

    async def hashes(self, seqs: Sequence[int]) -> Mapping[int, str]:
        return await self._engine.read(partial(_hashes, seqs=seqs))

    async def last(self) -> int:
        return await self._engine.read(_last)

    async def of_call(self, call_id: str) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(_of_call, call_id=call_id))


def _page(database: SqlConnection, *, wanted: Filter, before: int | None, limit: int) -> Sequence[AuditRecord]:
    high = _last(database) if before is None else before - 1
    ranges = reversed(_ranges(database, wanted, (0, high)))
    return _select(database, wanted, ranges, order="DESC", limit=limit)


def _chunk(database: SqlConnection, *, wanted: Filter, after: int) -> Sequence[AuditRecord]:
    ranges = _ranges(database, wanted, (after + 1, _last(database)))
    return _select(database, wanted, ranges, order="ASC", limit=CHUNK)


def _of_call(database: SqlConnection, *, call_id: str) -> Sequence[AuditRecord]:
    found = _records(database, "WHERE call_id = :call_id ORDER BY seq", {"call_id": call_id})
    if found or len(call_id) < 6:
        return found
    bounds = {"low": call_id, "high": call_id + "\U0010ffff"}
    matches = database.execute(
        "SELECT DISTINCT call_id FROM audit WHERE call_id >= :low AND call_id < :high LIMIT 2", bounds
    ).fetchall()
    return _of_call(database, call_id=matches[0][0]) if len(matches) == 1 else ()


def _refuse_earlier(database: SqlConnection) -> None:
    if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'audit_time'").fetchone():
        raise ToolError(
            ErrorCode.AUDIT_ERROR,
            "the record was written by an earlier release and cannot be filtered yet",
            suggestions=("run `toolreeve approvals`, which upgrades it, then try again",),
        )


def _last(database: SqlConnection) -> int:
    return int(database.execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()[0])


def _hashes(database: SqlConnection, *, seqs: Sequence[int]) -> dict[int, str]:
    query = f"SELECT seq, hash FROM audit WHERE seq IN ({placeholders(len(seqs))})"  # noqa: S608
    return {seq: bytes(digest).hex() for seq, digest in database.execute(query, seqs)}


def _count_calls(database: SqlConnection) -> int:
    """All records but the others, which are indexed: counting calls themselves would read every body."""
    others = "SELECT count(*) FROM audit WHERE kind <> 'call'"
    return int(database.execute(f"SELECT (SELECT count(*) FROM audit) - ({others})").fetchone()[0])  # noqa: S608


def _ranges(database: SqlConnection, wanted: Filter, whole: Range) -> list[Range]:
    """The ranges of records within `whole` where some have a time that is wanted, in order."""
    if wanted != Filter():
        _refuse_earlier(database)
    if wanted.since is None and wanted.until is None:
        return [whole]
    values = {"low": whole[0], "high": whole[1], "since": wanted.since, "until": wanted.until}
    return ranges_of((block for (block,) in database.execute(_BLOCKS, values)), whole)


def _select(
    database: SqlConnection, wanted: Filter, ranges: Iterable[Range], *, order: str, limit: int
) -> Sequence[AuditRecord]:
    values: dict[str, Any] = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    query = f"WHERE seq BETWEEN :low AND :high{_conditions(database, values)} ORDER BY seq {order} LIMIT :limit"
    found: list[AuditRecord] = []
    for low, high in ranges:
        if len(found) < limit:
            found += _records(database, query, values | {"low": low, "high": high, "limit": limit - len(found)})
    return found


def _conditions(database: SqlConnection, values: Mapping[str, Any]) -> str:
    given = [name for name in INDEXED if values[name] is not None]
    frequent = [name for name in given if values[name] == FREQUENT.get(name)]
    selective = [name for name in given if name not in frequent]
    if len(selective) > 1:
        selective.sort(key=lambda name: _count(database, name, values[name]))
    conditions = [f" AND {_indexed(name)}" for name in selective[:1]]
    conditions += [_ALSO.format(name=name, indexed=_indexed(name)) for name in selective[1:]]
    conditions += [f" AND {name} = :{name}" for name in frequent]
    conditions += [condition for name, condition in _TIMES.items() if values[name] is not None]
    return "".join(conditions)


def _indexed(name: str) -> str:
    """The condition on a value that is not FREQUENT, such that SQLite can use the index."""
    return f"{name} = :{name} AND {INDEX_BOUNDS[name]}" if name in INDEX_BOUNDS else f"{name} = :{name}"


def _count(database: SqlConnection, name: str, value: Any) -> int:
    query = f"SELECT count(*) FROM (SELECT 1 FROM audit WHERE {_indexed(name)} LIMIT {COUNTED})"  # noqa: S608 - a known name
    return int(database.execute(query, {name: value}).fetchone()[0])


def _records(database: SqlConnection, query: str, values: Mapping[str, Any]) -> list[AuditRecord]:
    columns = "seq, CAST(kind AS BLOB), CAST(call_id AS BLOB), CAST(body AS BLOB)"
    rows = database.execute(f"SELECT {columns} FROM audit {query}", values)  # noqa: S608
    return [
        AuditRecord(
            seq=seq, kind=kind.decode(errors="replace"), call_id=call_id.decode(errors="replace"), body=read_body(body)
        )
        for seq, kind, call_id, body in rows
    ]


_TIMES = {"since": " AND ts >= :since", "until": " AND ts < :until"}
_ALSO = " AND EXISTS (SELECT 1 FROM audit AS also INDEXED BY audit_{name} WHERE {indexed} AND also.seq = audit.seq)"
_BLOCKS = f"""
    WITH RECURSIVE block (number) AS (
        SELECT :low >> {BLOCK_BITS} WHERE :low <= :high
        UNION ALL SELECT number + 1 FROM block WHERE number < :high >> {BLOCK_BITS}
    )
    SELECT number FROM block WHERE EXISTS (
        SELECT 1 FROM audit INDEXED BY audit_time WHERE seq >> {BLOCK_BITS} = number
        AND ts >= ifnull(:since, -9e999) AND ts < ifnull(:until, 9e999)
    )
"""  # noqa: S608 - numbers only
