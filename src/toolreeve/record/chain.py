"""Hash chain: each record's hash covers the one before it.

So no record can change unnoticed. A chain alone does not show that its end was cut off; the checkpoint does: the last
number and hash, kept in the database with every commit and in the `witness` outside it. New records continue from the
checkpoint and not from the last row, so removed records stay visible as a gap. Its limit: an attacker who can write to
both files can write a new history. Against that, keep the head hash elsewhere and pass it to `verify(expect=...)`.
"""

import hashlib
import sqlite3
import struct
from collections.abc import Sequence
from dataclasses import dataclass

GENESIS = bytes(32)
ROWS_AT_ONCE = 500
PLACES = "(?, ?, ?, ?, ?)"

Row = tuple[int, str, str, bytes, bytes]
"""seq, call id, kind, body, hash"""

_frame = struct.Struct(">QII").pack
_sha256 = hashlib.sha256


def link(previous: bytes, seq: int, call_id: bytes, kind: bytes, body: bytes) -> bytes:
    """The hash of a record: lengths are part of it, so that no byte can move from one field to the next."""
    return _sha256(b"".join((previous, _frame(seq, len(call_id), len(kind)), call_id, kind, body))).digest()


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain: the number and hash of its last record."""

    seq: int
    hash: bytes


class Tail:
    """The growing end of the chain: numbers and links rows one after another."""

    __slots__ = ("_hash", "_seq")

    def __init__(self, head: Head) -> None:
        self._seq = head.seq
        self._hash = head.hash

    def add(self, call_id: str, kind: str, body: bytes) -> Row:
        self._seq += 1
        self._hash = link(self._hash, self._seq, call_id.encode(), kind.encode(), body)
        return self._seq, call_id, kind, body, self._hash

    @property
    def head(self) -> Head:
        return Head(self._seq, self._hash)


def insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Many rows in one statement: sqlite3 releases and reacquires the GIL once per statement, and concurrent calls
    would otherwise wait for it once per row."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        chunk = rows[start : start + ROWS_AT_ONCE]
        values = ", ".join([PLACES] * len(chunk))
        connection.execute(
            f"INSERT INTO audit (seq, call_id, kind, body, hash) VALUES {values}",  # noqa: S608 - question marks only
            [value for row in chunk for value in row],
        )


def read_head(connection: sqlite3.Connection) -> Head:
    """The head by the checkpoint, but never a number already in use: a row inserted by someone else keeps its own."""
    head = stored_head(connection)
    if head is None:
        raise sqlite3.DatabaseError("the checkpoint has been removed from the database; run `toolreeve audit verify`")
    (taken,) = connection.execute("SELECT max(seq) FROM audit").fetchone()
    return Head(max(head.seq, taken or 0), head.hash)


def stored_head(connection: sqlite3.Connection) -> Head | None:
    """The checkpoint in the database; None if it was removed."""
    row = connection.execute("SELECT seq, CAST(hash AS BLOB) FROM checkpoint WHERE id = 1").fetchone()
    return None if row is None else Head(*row)


def write_head(connection: sqlite3.Connection, head: Head) -> None:
    connection.execute("UPDATE checkpoint SET seq = ?, hash = ? WHERE id = 1", (head.seq, head.hash))
