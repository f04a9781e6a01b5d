"""The record in PostgreSQL: its conditions, and the times of its blocks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolreeve.record.audit import BLOCK_BITS, Filter, Range
from toolreeve.record.sql.audit import SqlAudit
from toolreeve.record.sql.connection import SqlConnection


class PostgresAudit(SqlAudit):
    def _blocks(self, database: SqlConnection, wanted: Filter, whole: Range) -> Iterable[int]:
        values = {
            "since": -math.inf if wanted.since is None else wanted.since,
            "until": math.inf if wanted.until is None else wanted.until,
            "first": whole[0] >> BLOCK_BITS,
            "last": whole[1] >> BLOCK_BITS,
        }
        return (block for (block,) in database.execute(_BLOCKS, values))

    def _conditions(self, database: SqlConnection, values: Mapping[str, Any]) -> str:  # noqa: ARG002
        return "".join(f" AND {_condition(name, value)}" for name, value in values.items() if value is not None)

    def _hashes(self, database: SqlConnection, *, seqs: Sequence[int]) -> Mapping[int, str]:
        query = "SELECT seq, encode(hash, 'hex') FROM audit WHERE seq = ANY(CAST(? AS bigint[]))"
        return dict(database.execute(query, (list(seqs),)).fetchall())

    def _count_calls(self, database: SqlConnection) -> int:
        return int(database.execute("SELECT count(*) FROM audit WHERE kind = 'call'").fetchone()[0])


def _condition(name: str, value: Any) -> str:
    if name == "success":
        return "success" if value else "NOT success"
    return {"since": "ts >= :since", "until": "ts < :until"}.get(name, f"{name} = :{name}")


_BLOCKS = """
    SELECT block FROM audit_blocks WHERE high >= :since AND low < :until AND block BETWEEN :first AND :last
    ORDER BY block
"""
