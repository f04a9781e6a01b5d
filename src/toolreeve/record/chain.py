"""Is the record whole? Each record's hash covers the one before it, so no record can change unnoticed.

A chain alone does not show that its end was cut off; the checkpoint does: the last number and hash, kept in the
database with every commit and, from time to time, in a small file beside it. New records continue from the checkpoint
and not from the last row, so what was removed stays visible as a gap. The limit of all this: whoever may write to
both files can write a new history. Against that, keep the head hash elsewhere and give it to `verify(expect=...)`.
"""

import hashlib
import json
import os
import sqlite3
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GENESIS = bytes(32)
CHUNK = 5_000
SHOWN_PROBLEMS = 100

_frame = struct.Struct(">QII").pack
_sha256 = hashlib.sha256


def link(previous: bytes, seq: int, call_id: bytes, kind: bytes, body: bytes) -> bytes:
    """The hash of a record: lengths are part of it, so that no byte can move from one field to the next."""
    return _sha256(previous + _frame(seq, len(call_id), len(kind)) + call_id + kind + body).digest()


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain: the number and hash of its last record."""

    seq: int
    hash: bytes


class Tail:
    """The growing end of the chain: numbers and links rows one after another."""

    __slots__ = ("_hash", "_seq")

    def __init__(self, head: Head) -> None:
        self._seq, self._hash = head.seq, head.hash

    def add(self, call_id: str, kind: str, body: bytes) -> tuple[int, str, str, bytes, bytes]:
        self._seq += 1
        self._hash = link(self._hash, self._seq, call_id.encode(), kind.encode(), body)
        return self._seq, call_id, kind, body, self._hash

    @property
    def head(self) -> Head:
        return Head(self._seq, self._hash)


def read_head(connection: sqlite3.Connection) -> Head:
    """The head by the checkpoint, but never a number that is already taken: a row put in by another hand keeps it."""
    head = _stored(connection)
    if head is None:
        raise sqlite3.DatabaseError("the checkpoint has been removed from the database; run `toolreeve audit verify`")
    (taken,) = connection.execute("SELECT max(seq) FROM audit").fetchone()
    return Head(max(head.seq, taken or 0), head.hash)


def _stored(connection: sqlite3.Connection) -> Head | None:
    row = connection.execute("SELECT seq, CAST(hash AS BLOB) FROM checkpoint WHERE id = 1").fetchone()
    return None if row is None else Head(*row)


def write_head(connection: sqlite3.Connection, head: Head) -> None:
    connection.execute("UPDATE checkpoint SET seq = ?, hash = ? WHERE id = 1", (head.seq, head.hash))


class CheckpointFile:
    """The checkpoint beside the database. One that contradicts the database is evidence and never overwritten."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".checkpoint")

    def read(self) -> Head | None:
        """None if there is no file. Raises ValueError if it cannot be understood."""
        try:
            saved = json.loads(self.path.read_bytes())
            return Head(int(saved["seq"]), bytes.fromhex(saved["hash"]))
        except FileNotFoundError:
            return None
        except (KeyError, TypeError) as problem:
            raise ValueError(f"not a checkpoint: {problem!r}") from None

    def save(self, connection: sqlite3.Connection) -> bool:
        """Bring the file up to date, durably and in one step. False if it contradicts the database."""
        try:
            saved = self.read()
        except ValueError:
            return False
        if saved is not None and not _holds(connection, saved):
            return False
        head = _stored(connection)
        if head is None:
            return False
        if saved is None or head.seq > saved.seq:
            self._replace(head)
        return True

    def _replace(self, head: Head) -> None:
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}-{threading.get_ident()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(json.dumps({"seq": head.seq, "hash": head.hash.hex()}).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _holds(connection: sqlite3.Connection, head: Head) -> bool:
    if head.seq == 0:
        return head.hash == GENESIS
    row = connection.execute("SELECT hash FROM audit WHERE seq = ?", (head.seq,)).fetchone()
    return row is not None and bytes(row[0]) == head.hash


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
        stored = _stored(connection)
        marks = {head.seq for head in (saved, stored) if head is not None}
        seen = _walk(_rows(connection), found, marks, expect)
    finally:
        connection.execute("COMMIT")
    _compare(found, "checkpoint file", saved, seen)
    _compare(found, "database", stored, seen)
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
    plain = ", ".join(f"CAST(ifnull({column}, '') AS BLOB)" for column in columns)
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
            if seq != number or link(previous, seq, call_id, kind, body) != digest:
                _judge(found, number, (seq, call_id, kind, body, digest))
                number = max(seq, 0)
            if seq in marks or digest == expect:
                seen[seq] = digest
            previous = digest
    found.head = Head(number, previous)
    return seen


def _judge(found: Verification, expected: int, row: _Row) -> None:
    """What is wrong here: something missing before this record, or this record itself?"""
    seq, name = row[0], row[1].decode(errors="replace")
    if seq > expected:
        gap = f"record {expected} is" if seq == expected + 1 else f"records {expected} to {seq - 1} are"
        found.add(Problem(expected, f"removed: {gap} missing before record {seq}", name))
    elif seq < expected:
        found.add(Problem(seq, "inserted: no record has such a number", name))
    else:
        found.add(Problem(seq, "changed, inserted or moved: its hash does not fit it and the record before it", name))


def _compare(found: Verification, place: str, head: Head | None, seen: dict[int, bytes]) -> None:
    if head is None or head.seq == 0:
        return
    last = found.head.seq
    if head.seq > last:
        gap = f"record {head.seq} is" if head.seq == last + 1 else f"records {last + 1} to {head.seq} are"
        found.add(Problem(head.seq, f"removed from the end: by the checkpoint in the {place}, {gap} missing"))
    elif seen.get(head.seq, head.hash) != head.hash:
        found.add(Problem(head.seq, f"replaced: the checkpoint in the {place} saw another record here"))
