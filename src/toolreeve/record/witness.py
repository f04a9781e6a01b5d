"""Witness file: the last acknowledged record, kept apart from the database.

It is advanced after each commit and before that commit is acknowledged, so an acknowledged record that is missing from
the database is always known here. It is written in place, one of two lines at a time, and never recreated silently:
a file that is missing or cannot be trusted raises, and `gaps` turns that into a record.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolreeve.core.atomic import sync_directory, write_private
from toolreeve.record.chain import GENESIS, HIGHEST, Head

_LINE = re.compile(rb"toolreeve-witness 1 ([0-9a-f]{32}) ([0-9]{20}) ([0-9a-f]{64}) ([0-9]{15}) ([0-9a-f]{16})\n")
_CHECKSUM = 16


class Untrusted(Exception):
    """The witness cannot be trusted. `kind` is missing, malformed, foreign or rolled back; `content` what it held."""

    def __init__(self, kind: str, problem: str, content: bytes = b"") -> None:
        super().__init__(problem)
        self.kind = kind
        self.content = content


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a witness saw: the head of the database with this identity, and when."""

    database: bytes
    head: Head
    at: float

    def to_line(self) -> bytes:
        head = self.head
        written = (
            f"toolreeve-witness 1 {self.database.hex()} {head.seq:020} {head.hash.hex()} {int(self.at * 1000):015} "
        )
        line = written.encode()
        return line + _checksum(line) + b"\n"


def _checksum(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest()[:_CHECKSUM].encode()


SIZE = len(Sighting(bytes(16), Head(0, GENESIS), 0).to_line())


def parse(content: bytes) -> Sighting:
    """The newer of the two lines. Raises Untrusted unless both are whole and of one database."""
    if not content:
        raise Untrusted("malformed", "it is empty")
    if len(content) != 2 * SIZE:
        raise Untrusted("malformed", f"it has {len(content)} bytes, not {2 * SIZE}", content)
    first = _parse_line(content, 0)
    second = _parse_line(content, SIZE)
    if first.database != second.database:
        raise Untrusted("malformed", "its lines are of two databases", content)
    return max(first, second, key=lambda sighting: sighting.head.seq)


def _parse_line(content: bytes, start: int) -> Sighting:
    line = content[start : start + SIZE]
    fields = _LINE.fullmatch(line)
    if fields is None or _checksum(line[: -_CHECKSUM - 1]) != fields[5]:
        raise Untrusted("malformed", f"line {1 + start // SIZE} is damaged", content)
    head = Head(int(fields[2]), bytes.fromhex(fields[3].decode()))
    if not is_plausible(head):
        raise Untrusted("malformed", f"no record has the number {head.seq} and this hash", content)
    return Sighting(bytes.fromhex(fields[1].decode()), head, int(fields[4]) / 1000)


def is_plausible(head: Head) -> bool:
    """Only the genesis has the number 0, and only it has the zero hash."""
    return 0 <= head.seq <= HIGHEST and len(head.hash) == len(GENESIS) and (head.seq == 0) == (head.hash == GENESIS)


class Witness:
    """The witness of one database. Several processes may advance it; it never goes back."""

    def __init__(self, database: Path) -> None:
        self.path = database.parent / "witness" / database.name
        self._highest = 0

    def look(self) -> Sighting:
        """Raises Untrusted."""
        with self._opened(os.O_RDONLY, fcntl.LOCK_SH) as descriptor:
            return parse(_content(descriptor))

    def advance(self, sighting: Sighting, *, sync: bool) -> None:
        """Raises Untrusted, and then leaves the file as it is."""
        with self._opened(os.O_RDWR, fcntl.LOCK_EX) as descriptor:
            content = _content(descriptor)
            seen = parse(content)
            if seen.database != sighting.database:
                raise Untrusted("foreign", "it belongs to another database", content)
            if seen.head.seq < self._highest:
                raise Untrusted("rolled back", f"it knew record {self._highest} before", content)
            if sighting.head.seq > seen.head.seq:
                os.pwrite(descriptor, sighting.to_line(), _older_line(content))
            self._highest = max(sighting.head.seq, seen.head.seq)
            if sync:
                os.fdatasync(descriptor)

    def make(self, sighting: Sighting) -> None:
        """Create or replace the file, durably and atomically. Its former content must have been recorded."""
        write_private(self.path, sighting.to_line() * 2)
        sync_directory(self.path.parent.parent)
        self._highest = sighting.head.seq

    @contextlib.contextmanager
    def _opened(self, how: int, lock: int) -> Iterator[int]:
        """Opened by name each time, so that a removed or replaced file is noticed at the next commit."""
        try:
            descriptor = os.open(self.path, how | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            raise Untrusted("missing", "it was removed, or not copied along") from None
        except OSError as problem:
            raise Untrusted("malformed", f"it cannot be opened: {problem.strerror}") from None
        try:
            fcntl.flock(descriptor, lock)
            yield descriptor
        finally:
            os.close(descriptor)


def _content(descriptor: int) -> bytes:
    try:
        return os.pread(descriptor, 2 * SIZE + 1, 0)
    except OSError as problem:
        raise Untrusted("malformed", f"it cannot be read: {problem.strerror}") from None


def _older_line(content: bytes) -> int:
    first = _parse_line(content, 0)
    second = _parse_line(content, SIZE)
    return 0 if first.head.seq <= second.head.seq else SIZE


class EarlierFile:
    """The checkpoint file of releases that had no witness: read once, at the upgrade."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".checkpoint")

    def look(self, database: bytes) -> Sighting:
        """Raises Untrusted."""
        try:
            content = self.path.read_bytes()
            saved = json.loads(content)
            head = Head(saved["seq"], bytes.fromhex(saved["hash"]))
            at = self.path.stat().st_mtime
        except FileNotFoundError:
            raise Untrusted("missing", "it was removed, or not copied along") from None
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise Untrusted("malformed", f"it is not a checkpoint: {problem!r}") from None
        if type(head.seq) is not int or not is_plausible(head):
            raise Untrusted("malformed", "no record has this number and hash", content[:400])
        return Sighting(database, head, at)
