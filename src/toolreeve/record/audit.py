"""Audit log reader: lists, filters, exports and verifies the record.

Reading never writes and never holds the database for long: it goes in chunks, also while another process appends.
"""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from typing import IO, Any

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record import export
from toolreeve.record.store import Store
from toolreeve.record.verify import Verification, verify

CHUNK = 1_000
MAX_LISTED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    seq: int
    kind: str
    call_id: str
    body: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "kind": self.kind,
            "call_id": self.call_id,
            "timestamp": timestamp(self.body.get("ts")),
            **self.body,
        }


def timestamp(at: Any) -> str | None:
    """ISO 8601 in UTC; None if `at` is not a time, as in a tampered record."""
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Selects records for which every given field matches. Times are seconds since the epoch; `until` is exclusive."""

    kind: str | None = None
    tool: str | None = None
    session: str | None = None
    user: str | None = None
    workspace: str | None = None
    code: str | None = None
    success: bool | None = None
    since: float | None = None
    until: float | None = None

    @classmethod
    def parse(cls, filters: Mapping[str, str]) -> "Filter":
        """From strings, as tools and command lines pass them. Raises ToolError(INVALID_PARAMS)."""
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(filters) - set(known)):
            raise ToolError(
                ErrorCode.INVALID_PARAMS, f"unknown filter: {', '.join(unknown)}; available: {', '.join(known)}"
            )
        given: dict[str, Any] = {name: _parse(name, value) for name, value in filters.items()}
        return cls(**given)

    def conditions(self) -> tuple[str, dict[str, Any]]:
        """The SQL condition and its parameters."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in values.items() if value is not None}
        return " AND ".join(_CONDITIONS[name] for name in given) or "1", given


def _field(name: str) -> str:
    """A field of the body; NULL if a tampered body is not JSON."""
    text = "CAST(body AS TEXT)"
    return f"CASE WHEN json_valid({text}) THEN json_extract({text}, '$.{name}') END"


_CONDITIONS = {
    "kind": "kind = :kind",
    "since": f"{_field('ts')} >= :since",
    "until": f"{_field('ts')} < :until",
} | {name: f"{_field(name)} = :{name}" for name in ("tool", "session", "user", "workspace", "code", "success")}


def _parse(name: str, value: str) -> str | bool | float:
    try:
        match name:
            case "success":
                return {"true": True, "false": False}[value.lower()]
            case "since" | "until":
                return _moment(value)
            case _:
                return value
    except (KeyError, ValueError):
        expected = "true or false" if name == "success" else "an ISO 8601 time or seconds since the epoch"
        raise ToolError(ErrorCode.INVALID_PARAMS, f"{name}: expected {expected}, got {value!r}") from None


def _moment(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return parsed.timestamp()


class Audit:
    """Reads the record of a store, which may be read-only."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def recent(self, *, last_n: int, filters: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """The last outcomes of calls, newest first, deferred ones included."""
        wanted = Filter.parse({"kind": "call", **filters})
        return [record.to_dict() for record in await self.list(wanted, limit=last_n)]

    async def list(
        self, wanted: Filter | None = None, *, limit: int = 100, before: int | None = None
    ) -> Sequence[AuditRecord]:
        """Newest first. For the next page, give the last `seq` as `before`."""
        await self._settle()
        limit = max(0, min(limit, MAX_LISTED))
        return await self._store.read(partial(_newest, wanted=wanted or Filter(), limit=limit, before=before))

    async def show(self, call_id: str) -> Sequence[AuditRecord]:
        """All records of one call, in order. A unique prefix of its id is enough."""
        await self._settle()
        return await self._store.read(partial(_of_call, call_id=call_id))

    async def stream(self, wanted: Filter | None = None) -> AsyncIterator[AuditRecord]:
        """Every matching record, oldest first, read in chunks."""
        await self._settle()
        seq = 0
        while chunk := await self._store.read(partial(_chunk, wanted=wanted or Filter(), after=seq)):
            for record in chunk:
                yield record
            seq = chunk[-1].seq

    async def export(self, form: str, stream: IO[bytes], wanted: Filter | None = None) -> int:
        """Write the record as `jsonl`, `csv` or `parquet`; returns the number of records."""
        await self._settle()
        with export.writer(form, stream) as write:
            count = 0
            seq = 0
            while chunk := await self._store.read(partial(_chunk, wanted=wanted or Filter(), after=seq)):
                write([record.to_dict() for record in chunk])
                seq = chunk[-1].seq
                count += len(chunk)
        return count

    async def verify(self, *, expect: str | None = None) -> Verification:
        """Check every link. `expect` is a head hash, in hexadecimal, kept outside this machine's reach."""
        try:
            expected = None if expect is None else bytes.fromhex(expect)
        except ValueError:
            raise ToolError(ErrorCode.INVALID_PARAMS, f"not a hexadecimal hash: {expect!r}") from None
        await self._settle()
        return await self._store.read(partial(verify, path=self._store.path, expect=expected))

    async def _settle(self) -> None:
        """Include calls that are still deferred. A failed write must not keep the rest from being read."""
        if not self._store.read_only:
            with contextlib.suppress(ToolError):
                await self._store.flush()


def _newest(connection: sqlite3.Connection, *, wanted: Filter, limit: int, before: int | None) -> Sequence[AuditRecord]:
    conditions, values = wanted.conditions()
    values |= {"limit": limit, "before": before}
    if before is not None:  # not `:before IS NULL OR …`, which would keep SQLite from using the index
        conditions = f"seq < :before AND {conditions}"
    return _records(connection, f"WHERE {conditions} ORDER BY seq DESC LIMIT :limit", values)


def _chunk(connection: sqlite3.Connection, *, wanted: Filter, after: int) -> Sequence[AuditRecord]:
    conditions, values = wanted.conditions()
    query = f"WHERE seq > :after AND {conditions} ORDER BY seq LIMIT {CHUNK}"
    return _records(connection, query, values | {"after": after})


def _of_call(connection: sqlite3.Connection, *, call_id: str) -> Sequence[AuditRecord]:
    found = _records(connection, "WHERE call_id = :call_id ORDER BY seq", {"call_id": call_id})
    if found or len(call_id) < 6:
        return found
    bounds = {"low": call_id, "high": call_id + "\U0010ffff"}
    matches = connection.execute(
        "SELECT DISTINCT call_id FROM audit WHERE call_id >= :low AND call_id < :high LIMIT 2", bounds
    ).fetchall()
    return _of_call(connection, call_id=matches[0][0]) if len(matches) == 1 else ()


def _records(connection: sqlite3.Connection, query: str, values: Mapping[str, Any]) -> Sequence[AuditRecord]:
    columns = "seq, CAST(kind AS BLOB), CAST(call_id AS BLOB), CAST(body AS BLOB)"
    rows = connection.execute(f"SELECT {columns} FROM audit {query}", values)  # noqa: S608
    return [
        AuditRecord(
            seq=seq, kind=kind.decode(errors="replace"), call_id=call_id.decode(errors="replace"), body=_body(body)
        )
        for seq, kind, call_id, body in rows
    ]


def _body(body: bytes) -> Mapping[str, Any]:
    """A tampered body must not keep the rest from being read."""
    try:
        value = json.loads(body)
    except ValueError:
        return {"unreadable": True}
    return value if isinstance(value, dict) else {"unreadable": True}
