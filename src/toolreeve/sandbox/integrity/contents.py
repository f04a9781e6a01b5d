"""Contents of what was put aside: digests, and the stamp that tells whether it is still the same.

Reads at most so much, in pieces. What is not read is known by inode, size and times, which commands cannot set back.
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
    """Deeper, or more, than is looked at."""


@dataclass(slots=True)
class ContentReading:
    """How many files and bytes may still be read; `only` these, if they are named."""

    files: int = 1000
    size: int = 64 << 20
    only: Collection[str] | None = None

    def take(self, shown: str, found: os.stat_result) -> bool:
        is_meant = self.only is None or shown in self.only
        if not is_meant or not stat.S_ISREG(found.st_mode) or found.st_size > self.size or not self.files:
            return False
        self.files -= 1
        self.size -= found.st_size
        return True


@dataclass(slots=True, kw_only=True)
class Contents:
    """`sha256` has the files that were read. `exact` says that all were, so that a copy has the same stamp. The stamp
    is empty where there is more than is looked at."""

    sha256: dict[str, str] = field(default_factory=dict)
    exact: bool = True
    stamp: str = ""


def describe(directory: int, name: str, reading: ContentReading) -> Contents:
    """A file, link or directory with all that is in it. Raises OSError."""
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
    """None for what cannot be read, or changes meanwhile."""
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
