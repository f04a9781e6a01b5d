"""Audit log reader: lists, filters, exports and verifies the record.

Reading never writes and never holds the database for long: it goes in chunks, also while another process appends.
"""

import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import ChainStore

if TYPE_CHECKING:
    from toolreeve.record.verify import Verification

T = TypeVar("T")
MAX_LISTED = 10_000
RECORD = "record"
"""The channel on which new records are announced."""
BLOCK_BITS = 10
"""Times are indexed by blocks of 2 ** 10 records."""


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


def read_body(body: bytes) -> Mapping[str, Any]:
    """A tampered body must not keep the rest from being read."""
    try:
        value = json.loads(body)
    except ValueError:
        return {"unreadable": True}
    return value if isinstance(value, dict) else {"unreadable": True}


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
        expected = "true or false" if name == "success" else _TIMES
        raise ToolError(ErrorCode.INVALID_PARAMS, f"{name}: expected {expected}, got {value!r}") from None


_TIMES = "an ISO 8601 time, seconds since the epoch, or an age such as 30m, 1h or 2d"
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def _moment(value: str) -> float:
    if age := _AGE.fullmatch(value.strip().lower()):
        return time.time() - float(age[1]) * _UNITS[age[2]]
    try:
        return float(value)
    except ValueError:
        parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return parsed.timestamp()


Range = tuple[int, int]


def ranges_of(blocks: Iterable[int], whole: Range) -> list[Range]:
    """The ranges of records within `whole` that these blocks cover, in order."""
    ranges: list[Range] = []
    for block in blocks:
        low = max(whole[0], block << BLOCK_BITS)
        high = min(whole[1], ((block + 1) << BLOCK_BITS) - 1)
        if ranges and ranges[-1][1] + 1 == low:
            low = ranges.pop()[0]
        ranges.append((low, high))
    return ranges


Show = Callable[[AuditRecord], Mapping[str, Any]]


class AuditTable(Protocol):
    """Each method is one query; the first page of any filter is found by an index."""

    async def page(self, wanted: Filter, *, before: int | None, limit: int) -> Sequence[AuditRecord]:
        """Newest first."""
        ...

    async def chunk(self, wanted: Filter, *, after: int) -> Sequence[AuditRecord]:
        """Oldest first, some at a time; empty at the end."""
        ...

    async def count_calls(self) -> int: ...

    async def hashes(self, seqs: Sequence[int]) -> Mapping[int, str]:
        """In hexadecimal, by number; those of missing records are left out."""
        ...

    async def last(self) -> int:
        """The number of the last record."""
        ...

    async def of_call(self, call_id: str) -> Sequence[AuditRecord]:
        """In order. A unique prefix of the id is enough."""
        ...


class AuditStore(Protocol):
    read_only: bool

    @property
    def path(self) -> Path: ...

    @property
    def place(self) -> str: ...

    @property
    def audit(self) -> AuditTable: ...

    async def flush(self) -> None: ...

    async def read_chain(self, query: Callable[[ChainStore], T]) -> T: ...

    def listen(self, channel: str, wake: Callable[[], None]) -> None: ...


class Audit:
    """Reads the record of a store, which may be read-only."""

    def __init__(self, store: AuditStore) -> None:
        self._store = store

    @property
    def place(self) -> str:
        """The database, in words."""
        return self._store.place

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
        return await self._store.audit.page(wanted or Filter(), before=before, limit=limit)

    async def hashes(self, seqs: Sequence[int]) -> Mapping[int, str]:
        """The hashes of these records, in hexadecimal."""
        return await self._store.audit.hashes(seqs)

    async def count_calls(self) -> int:
        """How many calls have ended, on record."""
        return await self._store.audit.count_calls()

    async def last(self) -> int:
        """The number of the last record; 0 if there is none."""
        return await self._store.audit.last()

    async def after(self, seq: int, wanted: Filter | None = None) -> Sequence[AuditRecord]:
        """The next records, oldest first, some at a time; what is still deferred comes later."""
        return await self._store.audit.chunk(wanted or Filter(), after=seq)

    async def show(self, call_id: str) -> Sequence[AuditRecord]:
        """All records of one call, in order. A unique prefix of its id is enough."""
        await self._settle()
        return await self._store.audit.of_call(call_id)

    async def stream(self, wanted: Filter | None = None) -> AsyncIterator[AuditRecord]:
        """Every matching record, oldest first, read in chunks."""
        await self._settle()
        seq = 0
        while chunk := await self._store.audit.chunk(wanted or Filter(), after=seq):
            for record in chunk:
                yield record
            seq = chunk[-1].seq

    async def stream_export(self, form: str, wanted: Filter | None, show: Show) -> AsyncIterator[bytes]:
        """As `export`, in pieces, with each record as `show` returns it."""
        from toolreeve.record import export

        await self._settle()
        pieces = export.Pieces()
        with export.writer(form, pieces) as write:
            seq = 0
            while chunk := await self._store.audit.chunk(wanted or Filter(), after=seq):
                write([show(record) for record in chunk])
                seq = chunk[-1].seq
                yield pieces.take()
        yield pieces.take()

    async def export(self, form: str, stream: IO[bytes], wanted: Filter | None = None) -> int:
        """Write the record as `jsonl`, `csv` or `parquet`; returns the number of records."""
        from toolreeve.record import export

        await self._settle()
        with export.writer(form, stream) as write:
            count = 0
            seq = 0
            while chunk := await self._store.audit.chunk(wanted or Filter(), after=seq):
                write([record.to_dict() for record in chunk])
                seq = chunk[-1].seq
                count += len(chunk)
        return count

    def watch(self, wake: Callable[[], None]) -> None:
        """Call `wake`, from any thread, when another process has written records, if the database tells: read on then,
        and now and then."""
        self._store.listen(RECORD, wake)

    async def verify(
        self, *, expect: str | None = None, progress: Callable[[int], None] | None = None
    ) -> "Verification":
        """Check every link. `expect` is a head hash, in hexadecimal, kept outside this machine's reach; `progress` is
        called in a thread, with the number of records checked so far."""
        from toolreeve.record.verify import verify

        try:
            expected = None if expect is None else bytes.fromhex(expect)
        except ValueError:
            raise ToolError(ErrorCode.INVALID_PARAMS, f"not a hexadecimal hash: {expect!r}") from None
        await self._settle()
        return await self._store.read_chain(partial(verify, path=self._store.path, expect=expected, progress=progress))

    async def _settle(self) -> None:
        """Include calls that are still deferred. A failed write must not keep the rest from being read."""
        if not self._store.read_only:
            with contextlib.suppress(ToolError):
                await self._store.flush()
