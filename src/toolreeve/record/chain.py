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
from dataclasses import dataclass
from pathlib import Path

GENESIS = bytes(32)

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
    head = stored_head(connection)
    if head is None:
        raise sqlite3.DatabaseError("the checkpoint has been removed from the database; run `toolreeve audit verify`")
    (taken,) = connection.execute("SELECT max(seq) FROM audit").fetchone()
    return Head(max(head.seq, taken or 0), head.hash)


def stored_head(connection: sqlite3.Connection) -> Head | None:
    """The checkpoint in the database; None if somebody took it away."""
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
        head = stored_head(connection)
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
