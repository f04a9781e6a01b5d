"""The record in SQL, filtered and paged by index (`record.audit.AuditTable`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from toolreeve.record.audit import AuditRecord, Filter, Range, ranges_of, read_body
from toolreeve.record.sql.connection import SqlConnection, TableEngine

CHUNK = 1_000


class SqlAudit(ABC):
    """What both databases do alike. Each has indexes of its own, and so its own conditions."""

    columns = "seq, kind, call_id, body"

    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def page(self, wanted: Filter, *, before: int | None, limit: int) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(self._page, wanted=wanted, before=before, limit=limit))

    async def chunk(self, wanted: Filter, *, after: int) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(self._chunk, wanted=wanted, after=after))

    async def count_calls(self) -> int:
        return await self._engine.read(self._count_calls)

    async def hashes(self, seqs: Sequence[int]) -> Mapping[int, str]:
        return await self._engine.read(partial(self._hashes, seqs=seqs))

    async def last(self) -> int:
        return await self._engine.read(_last)

    async def of_call(self, call_id: str) -> Sequence[AuditRecord]:
        return await self._engine.read(partial(self._of_call, call_id=call_id))

    def _page(
        self, database: SqlConnection, *, wanted: Filter, before: int | None, limit: int
    ) -> Sequence[AuditRecord]:
        high = _last(database) if before is None else before - 1
        ranges = reversed(self._ranges(database, wanted, (0, high)))
        return self._select(database, wanted, ranges, order="DESC", limit=limit)

    def _chunk(self, database: SqlConnection, *, wanted: Filter, after: int) -> Sequence[AuditRecord]:
        ranges = self._ranges(database, wanted, (after + 1, _last(database)))
        return self._select(database, wanted, ranges, order="ASC", limit=CHUNK)

    def _ranges(self, database: SqlConnection, wanted: Filter, whole: Range) -> list[Range]:
        """The ranges of records within `whole` where some may have a time that is wanted, in order."""
        if wanted.since is None and wanted.until is None:
            return [whole]
        return ranges_of(self._blocks(database, wanted, whole), whole)

    def _select(
        self, database: SqlConnection, wanted: Filter, ranges: Iterable[Range], *, order: str, limit: int
    ) -> Sequence[AuditRecord]:
        values = asdict(wanted)
        conditions = self._conditions(database, values)
        query = f"WHERE seq BETWEEN :low AND :high{conditions} ORDER BY seq {order} LIMIT :limit"
        found: list[AuditRecord] = []
        for low, high in ranges:
            if len(found) < limit:
                bounds = {"low": low, "high": high, "limit": limit - len(found)}
                found += self._records(database, query, values | bounds)
        return found

    def _of_call(self, database: SqlConnection, *, call_id: str) -> Sequence[AuditRecord]:
        found = self._records(database, "WHERE call_id = :call_id ORDER BY seq", {"call_id": call_id})
        if found or len(call_id) < 6:
            return found
        query = "SELECT DISTINCT call_id FROM audit WHERE call_id >= ? AND call_id < ? LIMIT 2"
        matches = database.execute(query, (call_id, call_id + "\U0010ffff")).fetchall()
        return self._of_call(database, call_id=matches[0][0]) if len(matches) == 1 else ()

    def _records(self, database: SqlConnection, query: str, values: Mapping[str, Any]) -> list[AuditRecord]:
        rows = database.execute(f"SELECT {self.columns} FROM audit {query}", values)  # noqa: S608
        return [
            AuditRecord(seq=seq, kind=_text(kind), call_id=_text(call_id), body=read_body(body))
            for seq, kind, call_id, body in rows
        ]

    @abstractmethod
    def _blocks(self, database: SqlConnection, wanted: Filter, whole: Range) -> Iterable[int]:
        """The blocks of records that may have a time that is wanted."""

    @abstractmethod
    def _conditions(self, database: SqlConnection, values: Mapping[str, Any]) -> str:
        """Of the fields that have a value, each with its AND in front."""

    @abstractmethod
    def _hashes(self, database: SqlConnection, *, seqs: Sequence[int]) -> Mapping[int, str]: ...

    @abstractmethod
    def _count_calls(self, database: SqlConnection) -> int: ...


def _last(database: SqlConnection) -> int:
    return int(database.execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()[0])


def _text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode(errors="replace")
