"""Has anybody touched the record? Every link is followed, and the end compared with what the checkpoints saw.

Nothing that a tampered row may hold, of whatever type, keeps the rest from being checked.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from toolreeve.record.chain import GENESIS, CheckpointFile, Head, link, stored_head

CHUNK = 250
SHOWN_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the record. `seq` is where it shows, `call_id` whose record that is, where known."""

    seq: int
    text: str
    call_id: str | None = None

    def __str__(self) -> str:
        whose = f" (call {self.call_id})" if self.call_id else ""
        return f"record {self.seq}{whose}: {self.text}"


@dataclass(slots=True)
class Verification:
    """`head` is the hash to keep elsewhere. After many problems the rest is counted, not listed."""

    records: int = 0
    head: Head = field(default=Head(0, GENESIS))
    problems: list[Problem] = field(default_factory=list)
    unlisted: int = 0

    @property
    def ok(self) -> bool:
        return not self.problems

    def add(self, problem: Problem) -> None:
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append(problem)
        else:
            self.unlisted += 1


_Row = tuple[int, bytes, bytes, bytes, bytes]


def verify(connection: sqlite3.Connection, file: CheckpointFile, *, expect: bytes | None = None) -> Verification:
    """Read the whole record as it is at this moment. `expect` is a head hash that was kept elsewhere."""
    found = Verification()
    saved = _read_saved(file, found)  # before the rows: a checkpoint of later rows would promise too much
    connection.execute("BEGIN")
    try:
        stored = stored_head(connection)
        marks = {head.seq for head in (saved, stored) if head is not None}
        seen = _walk(_rows(connection), found, marks, expect)
    finally:
        connection.execute("COMMIT")
    _compare(found, "the checkpoint file", saved, seen)
    _compare(found, "the checkpoint in the database", stored, seen)
    if (0 if stored is None else stored.seq) < found.head.seq:
        found.add(Problem(found.head.seq, "inserted at the end: the checkpoint in the database does not know it"))
    if expect is not None and expect not in seen.values():
        found.add(Problem(found.head.seq, f"no record has the expected hash {expect.hex()}"))
    return found


def _read_saved(file: CheckpointFile, found: Verification) -> Head | None:
    try:
        saved = file.read()
    except (OSError, ValueError) as problem:
        found.add(Problem(0, f"the checkpoint file {file.path} cannot be read: {problem}"))
        return None
    if saved is None:
        found.add(Problem(0, f"the checkpoint file {file.path} is missing: it was removed, or not copied along"))
    return saved


def _rows(connection: sqlite3.Connection) -> Iterator[Sequence[_Row]]:
    """Chunks of rows as plain bytes, whatever types another hand may have put there, in order of their number."""
    columns = ("call_id", "kind", "body", "hash")
    plain = ", ".join(f"CAST({column} AS BLOB)" for column in columns)
    cursor = connection.execute(f"SELECT seq, {plain} FROM audit ORDER BY seq")  # noqa: S608
    while chunk := cursor.fetchmany(CHUNK):
        yield chunk


def _walk(
    chunks: Iterable[Sequence[_Row]], found: Verification, marks: set[int], expect: bytes | None
) -> dict[int, bytes]:
    """Follow the links; the hashes found at `marks`, and the expected one, are the answer."""
    previous, number = GENESIS, 0
    seen: dict[int, bytes] = {}
    for chunk in chunks:
        found.records += len(chunk)
        for seq, call_id, kind, body, digest in chunk:
            number += 1
            try:
                fits = seq == number and link(previous, seq, call_id, kind, body) == digest
            except TypeError:  # a NULL, which only an altered schema allows
                fits = False
            if not fits:
                _judge(found, number, seq, call_id)
                number = max(seq, 0)
            if seq in marks or digest == expect:
                seen[seq] = digest
            previous = digest
    found.head = Head(number, previous)
    return seen


def _judge(found: Verification, expected: int, seq: int, call_id: bytes | None) -> None:
    """What is wrong here: something missing before this record, or this record itself?"""
    name = (call_id or b"").decode(errors="replace")
    if seq > expected:
        gap = f"record {expected} is" if seq == expected + 1 else f"records {expected} to {seq - 1} are"
        found.add(Problem(expected, f"removed: {gap} missing before record {seq} (call {name})"))
    elif seq < expected:
        found.add(Problem(seq, "inserted: no record has such a number", name))
    else:
        found.add(Problem(seq, "changed, inserted or moved: its hash does not fit it and the record before it", name))


def _compare(found: Verification, witness: str, head: Head | None, seen: dict[int, bytes]) -> None:
    if head is None or head.seq == 0:
        return
    last = found.head.seq
    if head.seq > last:
        gap = f"record {head.seq} is" if head.seq == last + 1 else f"records {last + 1} to {head.seq} are"
        found.add(Problem(head.seq, f"removed from the end: by {witness}, {gap} missing"))
    elif seen.get(head.seq, head.hash) != head.hash:
        found.add(Problem(head.seq, f"replaced: {witness} saw another record here"))
