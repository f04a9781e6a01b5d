"""The record in SQLite: its conditions, and the times of its blocks.

A filter's columns are computed from the body by SQLite itself, so they cannot disagree with what is hashed. Of several
filters, the one with the fewest records leads, and the others are looked up in their own index; what most records hold
is not indexed, and compared last. Times are not in the order of the records, for a record is written when its call
ends: blocks of records without a matching time are skipped.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.audit import BLOCK_BITS, Filter, Range
from toolreeve.record.sql.audit import SqlAudit
from toolreeve.record.sql.connection import SqlConnection, placeholders
from toolreeve.record.sqlite.schema import FREQUENT, INDEX_BOUNDS, INDEXED

COUNTED = 10_000
"""Beyond so many records it hardly matters which filter leads."""


class SqliteAudit(SqlAudit):
    columns = "seq, CAST(kind AS BLOB), CAST(call_id AS BLOB), CAST(body AS BLOB)"

    def _ranges(self, database: SqlConnection, wanted: Filter, whole: Range) -> list[Range]:
        if wanted != Filter():
            _refuse_earlier(database)
        return super()._ranges(database, wanted, whole)

    def _blocks(self, database: SqlConnection, wanted: Filter, whole: Range) -> Iterable[int]:
        values = {"low": whole[0], "high": whole[1], "since": wanted.since, "until": wanted.until}
        return (block for (block,) in database.execute(_BLOCKS, values))

    def _conditions(self, database: SqlConnection, values: Mapping[str, Any]) -> str:
        return _conditions(database, values)

    def _hashes(self, database: SqlConnection, *, seqs: Sequence[int]) -> Mapping[int, str]:
        query = f"SELECT seq, hash FROM audit WHERE seq IN ({placeholders(len(seqs))})"  # noqa: S608
        return {seq: bytes(digest).hex() for seq, digest in database.execute(query, seqs)}

    def _count_calls(self, database: SqlConnection) -> int:
        """All records but the others, which are indexed: counting calls themselves would read every body."""
        others = "SELECT count(*) FROM audit WHERE kind <> 'call'"
        return int(database.execute(f"SELECT (SELECT count(*) FROM audit) - ({others})").fetchone()[0])  # noqa: S608


def _refuse_earlier(database: SqlConnection) -> None:
    if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'audit_time'").fetchone():
        raise ToolError(
            ErrorCode.AUDIT_ERROR,
            "the record was written by an earlier release and cannot be filtered yet",
            suggestions=("run `toolreeve approvals`, which upgrades it, then try again",),
        )


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
