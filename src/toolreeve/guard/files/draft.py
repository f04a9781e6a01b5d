"""Drafts: atomic file replacement within an open directory.

New content is written to an unnamed file of the same directory, synced, and only then given its name. Where the file
system has no unnamed files, the draft has a temporary name; otherwise such a name exists only between two system calls.
Nothing is ever written through a name, so neither symbolic nor hard links lead a write elsewhere.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from toolreeve.guard.files.paths import PASSING, Spot

TEMP_PREFIX = ".toolreeve-"
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


def temp_name() -> str:
    """Contains the process id, so that a leftover can be told from a file still in use."""
    return f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(8).hex()}.tmp"


class Draft:
    """New content that has no final name yet."""

    def __init__(self, directory: int, temp: str, *, unnamed: bool) -> None:
        self._directory = directory
        self._temp = temp
        self._named = False
        self.descriptor = self._create(unnamed=unnamed)

    def _create(self, *, unnamed: bool) -> int:
        if unnamed:
            try:
                return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=self._directory)
            except OSError as problem:
                if problem.errno not in _NO_UNNAMED:
                    raise
        made = os.open(
            self._temp, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self._directory
        )
        self._named = True
        return made

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self.descriptor, left) :]

    def inherit(self, old: os.stat_result) -> None:
        """Take over owner and permissions of the file it replaces, except setuid, setgid and the sticky bit."""
        mine = os.fstat(self.descriptor)
        if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
            with suppress(PermissionError):
                os.fchown(self.descriptor, old.st_uid, old.st_gid)
        os.fchmod(self.descriptor, old.st_mode & 0o777)

    def publish(self, name: str, *, replace: bool) -> None:
        """Give it the name. Without `replace`, FileExistsError if the name is taken."""
        os.fsync(self.descriptor)
        if not replace:
            self._link(name)
            return
        if not self._named:
            self._link(self._temp)
            self._named = True
        os.rename(self._temp, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._named = False

    def _link(self, name: str) -> None:
        if self._named:
            os.link(self._temp, name, src_dir_fd=self._directory, dst_dir_fd=self._directory, follow_symlinks=False)
        else:
            os.link(f"/proc/self/fd/{self.descriptor}", name, dst_dir_fd=self._directory, follow_symlinks=True)

    def discard(self) -> None:
        os.close(self.descriptor)
        if self._named:
            with suppress(FileNotFoundError):
                os.unlink(self._temp, dir_fd=self._directory)


@contextmanager
def draft(directory: int, temp: str, *, unnamed: bool) -> Iterator[Draft]:
    made = Draft(directory, temp, unnamed=unnamed)
    try:
        yield made
    finally:
        made.discard()


def make_directories(spot: Spot) -> None:
    """Make the missing directories and hold the last one open instead. One that another process made is fine."""
    while spot.missing:
        name = spot.missing[0]
        with suppress(FileExistsError):
            os.mkdir(name, 0o777, dir_fd=spot.descriptor)
            sync_directory(spot.descriptor)
        below = os.open(name, PASSING, dir_fd=spot.descriptor)
        os.close(spot.descriptor)
        spot.descriptor = below
        spot.parts.append(spot.missing.pop(0))


def sync_directory(descriptor: int) -> None:
    """Make the names in a directory durable."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    try:
        os.fsync(readable)
    finally:
        os.close(readable)


def append_in_place(descriptor: int, data: bytes) -> None:
    """Append to a file too large to copy; if the data does not fit, the file is truncated to its former size."""
    size = os.fstat(descriptor).st_size
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def is_writable(spot: Spot) -> bool:
    """Whether the operating system lets us write the file itself, which replacing it does not check."""
    return os.access(spot.name, os.W_OK, dir_fd=spot.descriptor, follow_symlinks=False, effective_ids=True)


def is_same(first: os.stat_result, second: os.stat_result | None) -> bool:
    return second is not None and (first.st_dev, first.st_ino, first.st_size, first.st_mtime_ns) == (
        second.st_dev,
        second.st_ino,
        second.st_size,
        second.st_mtime_ns,
    )


def remove_empty(spot: Spot) -> bool:
    try:
        os.rmdir(spot.name, dir_fd=spot.descriptor)
    except OSError as problem:
        if problem.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
            return False
        raise
    return True


def is_link(found: os.stat_result | None) -> bool:
    return found is not None and stat.S_ISLNK(found.st_mode)
