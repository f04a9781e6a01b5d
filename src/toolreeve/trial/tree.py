"""Trees by descriptor: opening, looking, fingerprints and copies beneath a directory.

No link is ever followed and no mount entered: what a command left in a path cannot lead anywhere else.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from toolreeve.core.fingerprints import CHUNK, entry_fingerprint, file_fingerprint, read_chunks
from toolreeve.core.openat2 import How, open_beneath
from toolreeve.core.sparse import data_ranges

MAX_DEPTH = 100
MAX_ENTRIES = 100_000
_SMALL = 64 << 10
_FILE = How(os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC, one_mount=True)
_DIRECTORY = How(os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, one_mount=True)
_ANY = How(os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, one_mount=True)


class TooMany(Exception):
    """A tree is deeper or has more entries than is looked at."""


class FileIdentity(NamedTuple):
    """What a path was when it was looked at. A directory is known by its inode alone: its times change with entries.
    `ctime_ns` is 0 where a rename must not count as a change."""

    inode: int
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0

    def is_same(self, other: "FileIdentity | None") -> bool:
        return other is not None and self[:3] == other[:3]


def identity_of(found: os.stat_result, *, exact: bool = False) -> FileIdentity:
    if stat.S_ISDIR(found.st_mode):
        return FileIdentity(found.st_ino)
    return FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns if exact else 0)


def look(directory: int, name: str) -> os.stat_result | None:
    """What is there, a link not followed, or None."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _opened(root: int, path: str, how: How) -> int:
    descriptor = open_beneath(root, os.fsencode(path or "."), how)
    if descriptor < 0:
        raise OSError(-descriptor, os.strerror(-descriptor), path)
    return descriptor


@contextmanager
def directory_at(root: int, path: str) -> Iterator[int]:
    """A directory beneath a root, open for listing. Raises OSError."""
    descriptor = _opened(root, path, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def file_at(root: int, path: str) -> Iterator[int]:
    """A file beneath a root, open for reading. Raises OSError."""
    descriptor = _opened(root, path, _FILE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def entry_at(root: int, path: str) -> Iterator[int]:
    """Whatever is at a path beneath a root, as a descriptor that neither reads nor writes. Raises OSError."""
    descriptor = _opened(root, path, _ANY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(root: int, path: str) -> int:
    """As `directory_at`, for a caller that closes it."""
    return _opened(root, path, _DIRECTORY)


def make_accessible(root: int, path: str, mode: int) -> None:
    """Let its owner read an entry of a private tree, whatever mode a command gave it."""
    wanted = 0o700 if stat.S_ISDIR(mode) else 0o400
    if mode & wanted != wanted:
        with entry_at(root, path) as descriptor:
            os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(mode) | wanted)


def fingerprint(root: int, path: str) -> str | None:
    """As `Files.fingerprint`: what is at a path, and any difference shows. None if nothing exists."""
    directory, name = os.path.split(path)
    try:
        with directory_at(root, directory) as parent:
            found = look(parent, name)
            return (
                None if found is None else entry_fingerprint(parent, name, found, lambda: _of_file(parent, name, found))
            )
    except (FileNotFoundError, NotADirectoryError):
        return None


def _of_file(directory: int, name: str, found: os.stat_result) -> str:
    with file_at(directory, name) as descriptor:
        return file_fingerprint(descriptor, found)


def has_same_content(one: int, other: int) -> bool:
    """Whether two files of one size have the same bytes."""
    return all(chunk == os.pread(other, len(chunk), at * CHUNK) for at, chunk in enumerate(read_chunks(one)))


class WalkedEntry(NamedTuple):
    """An entry of a walk; `path` is relative to where it started."""

    path: str
    stat: os.stat_result


def walk(root: int, path: str) -> Iterator[WalkedEntry]:
    """Everything below a directory, parents first, names sorted. Raises TooMany and OSError."""
    ahead = [path]
    count = 0
    while ahead:
        below = ahead.pop()
        if below.count("/") > MAX_DEPTH:
            raise TooMany(f"deeper than {MAX_DEPTH} directories")
        with directory_at(root, below) as descriptor:
            inner: list[str] = []
            for name in sorted(os.listdir(descriptor)):
                count += 1
                if count > MAX_ENTRIES:
                    raise TooMany(f"more than {MAX_ENTRIES} entries")
                if (found := look(descriptor, name)) is not None:
                    at = f"{below}/{name}" if below else name
                    yield WalkedEntry(at, found)
                    if stat.S_ISDIR(found.st_mode):
                        inner.append(at)
        ahead += reversed(inner)


class TreeDigest:
    """The fingerprint of a whole directory: its entries with their identities."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, entry: WalkedEntry) -> None:
        self._hash.update(repr((entry.path, identity_of(entry.stat, exact=True))).encode(errors="surrogateescape"))

    @property
    def value(self) -> str:
        return f"tree:{self._hash.hexdigest()}"


def tree_fingerprint(directory: int, name: str) -> str:
    """Of the directory `name`, as `TreeDigest`. Raises TooMany and OSError."""
    digested = TreeDigest()
    for entry in walk(directory, name):
        digested.add(entry)
    return digested.value


def is_open_for_writing(directory: int, name: str) -> bool:
    """The kernel refuses a read lease on a file that a process has open for writing: it would go on with the old one.
    Files of other owners and some file systems give no leases; there the answer is no."""
    try:
        with file_at(directory, name) as descriptor:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as refusal:
        return refusal.errno == errno.EAGAIN
    return False


def copy_data(source: int, target: int, size: int) -> None:
    """Copy a file's bytes; the holes of a large one stay holes."""
    if size <= _SMALL:
        if os.write(target, os.pread(source, size, 0)) < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return
    os.ftruncate(target, size)
    for start, end in data_ranges(source, size):
        at = start
        os.lseek(target, at, os.SEEK_SET)
        while at < end and (sent := os.sendfile(target, source, at, min(end - at, CHUNK))):
            at += sent


def remove_tree(directory: int, name: str) -> None:
    """Remove a file, or a directory of our own with everything below it. What is gone already does not matter."""
    found = look(directory, name)
    if found is None:
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=directory)
        return
    try:
        shutil.rmtree(name, dir_fd=directory)
    except PermissionError:
        _unlock(directory, name, found)
        shutil.rmtree(name, dir_fd=directory)


def _unlock(directory: int, name: str, found: os.stat_result) -> None:
    make_accessible(directory, name, found.st_mode)
    for each in walk(directory, name):
        if stat.S_ISDIR(each.stat.st_mode):
            make_accessible(directory, each.path, each.stat.st_mode)
