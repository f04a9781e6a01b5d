"""Contents of a quarantined path: digests, and a stamp that detects changes.

Reads a limited amount, in pieces. What is not read is identified by inode, size and times, which commands cannot set
back.
"""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from toolreeve.sandbox.integrity import beneath

DEEPEST = 64
_MOST_ENTRIES = 20_000


class Boundless(Exception):
    """Deeper or larger than the limits."""


@dataclass(slots=True)
class ContentReading:
    """How many files and bytes may still be read; `only` these names, if given."""

    files: int = 1000
    size: int = 64 << 20
    only: Collection[str] | None = None

    def take(self, shown: str, found: os.stat_result) -> bool:
        is_wanted = self.only is None or shown in self.only
        has_room = self.files > 0 and found.st_size <= self.size
        if not is_wanted or not has_room or not stat.S_ISREG(found.st_mode):
            return False
        self.files -= 1
        self.size -= found.st_size
        return True


@dataclass(slots=True, kw_only=True)
class Contents:
    """`sha256` has the files that were read. `exact`: all were read, so that a copy has the same stamp. The stamp is
    empty beyond the limits."""

    sha256: dict[str, str] = field(default_factory=dict)
    exact: bool = True
    stamp: str = ""


def describe(directory: int, name: str, reading: ContentReading) -> Contents:
    """Describe a file, a link, or a directory with all below it. Raises OSError."""
    contents = Contents()
    stamp = hashlib.sha256()
    try:
        for count, line in enumerate(_lines(directory, name, ".", contents, reading, DEEPEST)):
            if count >= _MOST_ENTRIES:
                raise Boundless
            stamp.update(line)
    except Boundless:
        contents.exact = False
        return contents
    contents.stamp = stamp.hexdigest()
    return contents


def _lines(
    directory: int, name: str, shown: str, contents: Contents, reading: ContentReading, deepest: int
) -> Iterator[bytes]:
    found = os.lstat(name, dir_fd=directory)
    known = f"{shown}\0{stat.S_IFMT(found.st_mode)}\0{found.st_mode & 0o777}\0".encode(errors="surrogateescape")
    if stat.S_ISLNK(found.st_mode):
        yield known + os.fsencode(os.readlink(name, dir_fd=directory)) + b"\n"
    elif stat.S_ISDIR(found.st_mode):
        yield known + b"\n"
        yield from _below(directory, name, shown, contents, reading, deepest)
    elif reading.take(shown, found) and (digest := _read(directory, name, found)):
        contents.sha256[shown] = digest
        yield known + digest.encode() + b"\n"
    else:
        contents.exact = False
        yield known + f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}\n".encode()


def _below(
    directory: int, name: str, shown: str, contents: Contents, reading: ContentReading, deepest: int
) -> Iterator[bytes]:
    if not deepest:
        raise Boundless
    if not os.access(name, os.R_OK | os.X_OK, dir_fd=directory, effective_ids=True):
        contents.exact = False
        return
    with beneath.listed(directory, name) as below:
        names = os.listdir(below)
        if len(names) > _MOST_ENTRIES:
            raise Boundless
        for each in sorted(names):
            yield from _lines(below, each, f"{shown}/{each}".removeprefix("./"), contents, reading, deepest - 1)


def _read(directory: int, name: str, found: os.stat_result) -> str | None:
    """The digest; None for a file that cannot be read, or changes meanwhile."""
    if not os.access(name, os.R_OK, dir_fd=directory, effective_ids=True):
        return None
    digest = hashlib.sha256()
    left = found.st_size
    with beneath.opened_file(directory, name) as descriptor:
        while left > 0 and (piece := os.read(descriptor, min(left, 1 << 20))):
            digest.update(piece)
            left -= len(piece)
        is_whole = not left and not os.read(descriptor, 1)
    return digest.hexdigest() if is_whole else None
