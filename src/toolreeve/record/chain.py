"""Hash chain: each record's hash covers the one before it.

So no record can change unnoticed. A chain alone does not show that its end was cut off; the checkpoint does: the last
number and hash, kept in the database with every commit and in the `witness` outside it. New records continue from the
checkpoint and not from the last row, so removed records stay visible as a gap. Its limit: an attacker who can write to
both files can write a new history. Against that, keep the head hash elsewhere and pass it to `verify(expect=...)`.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

GENESIS = bytes(32)
HIGHEST = 2**53
"""No record has a higher number."""

Row = tuple[int, str, str, bytes, bytes]
"""seq, call id, kind, body, hash"""
Line = tuple[str, str, dict[str, Any]]
"""kind, call id, body: what becomes a row."""
Entry = tuple[str, str, bytes]
"""call id, kind, body: a line as it is stored and hashed."""
StoredRow = tuple[int, bytes, bytes, bytes, bytes]
"""As Row, as it was read."""

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


@dataclass(frozen=True, slots=True)
class WitnessedRecord:
    """The database's view of its witness: `since` which record one exists, and the last record `synced` to it."""

    identity: bytes
    since: int | None
    synced: int
    shared: bool = False
    """Whether other machines have witnesses of their own, so that one more is no surprise."""


class ChainError(Exception):
    """The stored chain cannot be continued: its checkpoint or identity was removed, or the database is damaged."""


class ChainStore(Protocol):
    """The stored chain within one transaction. `record.sqlite.chain` has it in SQLite."""

    def stored_head(self) -> Head | None:
        """The checkpoint; None if it was removed."""

    def next_head(self) -> Head:
        """The checkpoint, but never a number already in use: a row inserted by someone else keeps its own. Raises
        ChainError if the checkpoint was removed."""
        ...

    def append(self, rows: Sequence[Row], head: Head) -> None:
        """Add rows and move the checkpoint to `head`."""

    def rows(self, after: int | None = None, until: int | None = None) -> Iterator[Sequence[StoredRow]]:
        """Chunks of rows as plain bytes, whatever types tampering may have left, in order of their number: those after
        record `after`, up to `until`."""
        ...

    def head_at(self, seq: int) -> Head | None:
        """The last record up to `seq`."""

    def reopener(self) -> Callable[[], AbstractContextManager["ChainStore"]]:
        """Opens the chain of this snapshot once more. It can be sent to another process."""
        ...

    def hash_at(self, seq: int) -> bytes | None:
        """The hash of a record; None if it is missing."""

    def last_time(self, seq: int) -> Any:
        """The time of the last record up to `seq`; None if there is none."""

    def open_intents(self, after: int, until: int = HIGHEST) -> Sequence[tuple[str, bytes]]:
        """Call id and body of each intent after record `after`, up to `until`, that has no outcome."""
        ...

    def first(self) -> int:
        """The number of the first stored record; 1 if there is none."""
        ...

    def bodies(self, kind: str) -> Sequence[bytes]:
        """The bodies of all records of this kind, newest first."""
        ...

    def remove_through(self, seq: int) -> None:
        """Remove the records up to this one. An archive must hold them."""

    def restore_checkpoint(self) -> bool:
        """Set the checkpoint to the last row if it was removed; whether it was."""
        ...

    def restore_identity(self) -> bool:
        """Give the database a new identity if its own was removed; whether it was."""
        ...

    def witnessed(self) -> WitnessedRecord | None:
        """None in a database of a release that had no witness. Raises ChainError if the identity was removed."""

    def set_witnessed(self, seq: int) -> None:
        """A witness exists, since record `seq` if there was none before, and has seen this record."""

    def set_synced(self, seq: int) -> None:
        """The witness was on disk up to record `seq`."""

    def empty_log(self) -> None:
        """Move what is committed out of the write-ahead log, so that removing the log does not remove it."""

    def transaction(self) -> AbstractContextManager[None]:
        """Outside a transaction: a write transaction of its own."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Outside a transaction: reads see one moment."""
        ...
