"""Gaps: records that the witness knows and the database does not hold.

A finding becomes a record of the chain, so that it outlives the witness and every later start; it stays a problem of
the record until a person accepts it. Numbers of lost records are never reused.
"""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolreeve.record.chain import GENESIS, Head, stored_head
from toolreeve.record.witness import EarlierFile, Sighting, Untrusted

GAP = "gap"
ACCEPTED = "gap_accepted"
WITNESSED = "witness"
LOST = "lost"
REPLACED = "replaced"
_SHOWN_BYTES = 512


@dataclass(frozen=True, slots=True)
class WitnessedRecord:
    """The database's view of its witness: `since` which record one exists, and the last record `synced` to it."""

    identity: bytes
    since: int | None
    synced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Lost (records `first` to `last` are missing at the end), replaced, or why the witness is not trusted."""

    kind: str
    text: str
    first: int = 0
    last: int = 0
    witness: str = ""

    def to_body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"finding": self.kind, "message": self.text}
        if self.kind == LOST:
            body |= {"first": self.first, "last": self.last}
        if self.witness:
            body["witness"] = self.witness
        return body


def read_known(connection: sqlite3.Connection) -> WitnessedRecord | None:
    """None in a database of a release that had no witness."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'witness'").fetchone():
        return None
    row = connection.execute("SELECT CAST(identity AS BLOB), since, synced FROM witness WHERE id = 1").fetchone()
    if row is None:
        raise sqlite3.DatabaseError("the identity was removed from the database; run `toolreeve audit verify`")
    return WitnessedRecord(*row)


def examine(
    connection: sqlite3.Connection, known: WitnessedRecord | None, look: Callable[[], Sighting], *, name: str
) -> Finding | None:
    """Compare with the witness, which must be read before the rows or inside a write transaction."""
    try:
        sighting = look()
    except Untrusted as problem:
        shown = problem.content[:_SHOWN_BYTES].decode(errors="replace")
        return Finding(kind=problem.kind, text=f"{name} is {problem.kind}: {problem}", witness=shown)
    written = sighting.to_line().decode().rstrip()
    if known is not None and sighting.database != known.identity:
        seen = f"it belongs to another database, whose last record was {sighting.head.seq}"
        return Finding(kind="foreign", text=f"{name} is foreign: {seen}", witness=written)
    return _compare(connection, known, sighting, name=name, written=written)


def _compare(
    connection: sqlite3.Connection, known: WitnessedRecord | None, sighting: Sighting, *, name: str, written: str
) -> Finding | None:
    head = stored_head(connection) or Head(0, GENESIS)
    seq = sighting.head.seq
    if seq > head.seq:
        text = _lost(connection, head, sighting, name)
        return Finding(kind=LOST, text=text, first=head.seq + 1, last=seq, witness=written)
    if known is not None and seq < known.synced:
        text = f"{name} is rolled back: it knows record {seq} and knew record {known.synced} before"
        return Finding(kind="rolled back", text=text, witness=written)
    if _hash_at(connection, seq) != sighting.head.hash:
        return Finding(kind=REPLACED, text=f"replaced: {name} saw another record {seq}", witness=written)
    return None


def _lost(connection: sqlite3.Connection, head: Head, sighting: Sighting, name: str) -> str:
    first = head.seq + 1
    last = sighting.head.seq
    count = "1 acknowledged record is" if first == last else f"{last - first + 1} acknowledged records are"
    (at,) = connection.execute(_LAST_TIME, (head.seq,)).fetchone() or (None,)
    after = "" if at is None else f"after {_time(at)} and "
    return (
        f"lost: {count} missing from the end ({first} to {last}), written {after}until {_time(sighting.at)} by {name}"
    )


_LAST_TIME = """
    SELECT CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.ts') END
    FROM audit WHERE seq <= ? ORDER BY seq DESC LIMIT 1
"""


def _time(at: Any) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (TypeError, ValueError, OverflowError, OSError):
        return "an unknown time"


def _hash_at(connection: sqlite3.Connection, seq: int) -> bytes | None:
    if seq == 0:
        return GENESIS
    row = connection.execute("SELECT CAST(hash AS BLOB) FROM audit WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else row[0]


def first_look(
    connection: sqlite3.Connection, known: WitnessedRecord | None, look: Callable[[], Sighting], earlier: EarlierFile
) -> Finding | None:
    """The finding about a database that has no witness yet. It must be recorded when the database gets one."""
    try:
        sighting = look()
    except Untrusted as problem:
        if problem.kind == "missing":
            return _upgrade(connection, known, earlier)
    else:
        if known is not None and sighting.database == known.identity:
            return None  # created by a start that was killed before its commit
    return examine(connection, known or WitnessedRecord(b"", None, 0), look, name="the witness")


def _upgrade(connection: sqlite3.Connection, known: WitnessedRecord | None, earlier: EarlierFile) -> Finding | None:
    head = stored_head(connection)
    if not earlier.path.exists() and (head is None or head.seq == 0):
        return None
    identity = known.identity if known is not None else b""
    return examine(connection, known, lambda: earlier.look(identity), name="the checkpoint file")


def bounds(body: Mapping[str, Any]) -> tuple[int, int] | None:
    """The range of records that a gap reports as lost."""
    first = body.get("first")
    last = body.get("last")
    return (first, last) if type(first) is int and type(last) is int else None
