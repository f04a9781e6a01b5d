"""Gaps: records that the witness knows and the database does not hold.

A finding becomes a record of the chain, so that it outlives the witness and every later start; it stays a problem of
the record until a person accepts it. Numbers of lost records are never reused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolreeve.record.chain import GENESIS, ChainStore, Head, WitnessedRecord
from toolreeve.record.witness import EarlierFile, Sighting, Untrusted

GAP = "gap"
ACCEPTED = "gap_accepted"
WITNESSED = "witness"
LOST = "lost"
REPLACED = "replaced"
_SHOWN_BYTES = 512


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


def examine(
    chain: ChainStore, known: WitnessedRecord | None, look: Callable[[], Sighting], *, name: str
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
    return _compare(chain, known, sighting, name=name, written=written)


def _compare(
    chain: ChainStore, known: WitnessedRecord | None, sighting: Sighting, *, name: str, written: str
) -> Finding | None:
    head = chain.stored_head() or Head(0, GENESIS)
    seq = sighting.head.seq
    if seq > head.seq:
        text = _lost(chain, head, sighting, name)
        return Finding(kind=LOST, text=text, first=head.seq + 1, last=seq, witness=written)
    if known is not None and seq < known.synced:
        text = f"{name} is rolled back: it knows record {seq} and knew record {known.synced} before"
        return Finding(kind="rolled back", text=text, witness=written)
    if chain.hash_at(seq) != sighting.head.hash:
        return Finding(kind=REPLACED, text=f"replaced: {name} saw another record {seq}", witness=written)
    return None


def _lost(chain: ChainStore, head: Head, sighting: Sighting, name: str) -> str:
    first = head.seq + 1
    last = sighting.head.seq
    count = "1 acknowledged record is" if first == last else f"{last - first + 1} acknowledged records are"
    at = chain.last_time(head.seq)
    after = "" if at is None else f"after {_time(at)} and "
    return (
        f"lost: {count} missing from the end ({first} to {last}), written {after}until {_time(sighting.at)} by {name}"
    )


def _time(at: Any) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (TypeError, ValueError, OverflowError, OSError):
        return "an unknown time"


def first_look(
    chain: ChainStore, known: WitnessedRecord | None, look: Callable[[], Sighting], earlier: EarlierFile
) -> Finding | None:
    """The finding about a database that has no witness yet. It must be recorded when the database gets one."""
    try:
        sighting = look()
    except Untrusted as problem:
        if problem.kind == "missing":
            return _upgrade(chain, known, earlier)
    else:
        if known is not None and sighting.database == known.identity:
            return None  # created by a start that was killed before its commit
    return examine(chain, known or WitnessedRecord(b"", None, 0), look, name="the witness")


def _upgrade(chain: ChainStore, known: WitnessedRecord | None, earlier: EarlierFile) -> Finding | None:
    head = chain.stored_head()
    if (known is not None and known.shared) or (not earlier.path.exists() and (head is None or head.seq == 0)):
        return None
    identity = known.identity if known is not None else b""
    return examine(chain, known, lambda: earlier.look(identity), name="the checkpoint file")


def bounds(body: Mapping[str, Any]) -> tuple[int, int] | None:
    """The range of records that a gap reports as lost."""
    first = body.get("first")
    last = body.get("last")
    return (first, last) if type(first) is int and type(last) is int else None
