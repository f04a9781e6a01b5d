"""File operations beneath a root, by descriptor, through no link.

Whatever replaces a name meanwhile, nothing outside the root is opened, moved or removed.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from toolreeve.core.sparse import data_ranges

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_READABLE = 0o500


class TooLarge(Exception):
    """Larger than the room for a copy."""


@contextmanager
def parent(root: str, path: str) -> Iterator[tuple[int, str]]:
    """The open directory that holds an absolute path below a root, and the path's last name. Raises OSError."""
    with unlocked(root, os.path.dirname(path)) as directory:
        yield directory, os.path.basename(path)


@contextmanager
def unlocked(root: str, path: str) -> Iterator[int]:
    """An open directory that is a root or lies below it. Where its mode, or that of a parent, keeps us out as the
    owner, the mode is changed meanwhile and restored. Raises OSError."""
    opened: list[tuple[int, int]] = []
    try:
        opened.append(_open_step(root, None))
        for name in filter(None, path[len(root.rstrip("/")) + 1 :].split("/")):
            opened.append(_open_step(name, opened[-1][0]))
        yield opened[-1][0]
    finally:
        for directory, mode in reversed(opened):
            if stat.S_IMODE(os.fstat(directory).st_mode) == mode | _READABLE != mode:
                os.chmod(f"/proc/self/fd/{directory}", mode)
            os.close(directory)


def _open_step(name: str, directory: int | None) -> tuple[int, int]:
    """A directory, and the mode that it had."""
    descriptor = os.open(name, _STEP, dir_fd=directory)
    path = f"/proc/self/fd/{descriptor}"
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if not os.access(path, os.R_OK | os.X_OK, effective_ids=True):
        with suppress(PermissionError):  # we do not own it, and a command does not either
            os.chmod(path, mode | _READABLE)
    return descriptor, mode


def read(directory: int, name: str, most: int) -> bytes | None:
    """A regular file's content; None if it is longer than `most`, or not a regular file. Raises OSError."""
    with opened_file(directory, name) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = b""
        while len(data) <= most and (piece := os.read(descriptor, min(_CHUNK, most + 1 - len(data)))):
            data += piece
    return data if len(data) <= most else None


def names(directory: int, name: str) -> list[str]:
    """The sorted names in a directory. Raises OSError."""
    with listed(directory, name) as descriptor:
        return sorted(os.listdir(descriptor))


def write_new(directory: int, name: str, data: bytes, mode: int, owner: tuple[int, int]) -> None:
    """Raises FileExistsError if the name is taken."""
    descriptor = os.open(name, _NEW, mode & 0o777, dir_fd=directory)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        _set_owner_and_mode(descriptor, mode, owner)


def _set_owner_and_mode(descriptor: int, mode: int, owner: tuple[int, int]) -> None:
    with suppress(PermissionError):  # only root can change owners
        os.fchown(descriptor, *owner)
    os.fchmod(descriptor, mode & 0o777)


def move(directory: int, name: str, target: int, new_name: str, room: "Room") -> None:
    """Rename, or copy and remove where the target is another file system. Raises OSError, and TooLarge with everything
    left in place if there is no room for a copy."""
    try:
        rename(directory, name, target, new_name)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        try:
            copy(directory, name, target, new_name, room)
        except BaseException:
            with suppress(FileNotFoundError):
                remove(target, new_name)
            raise
        remove(directory, name)


def rename(directory: int, name: str, target: int, new_name: str) -> None:
    """Raises OSError."""
    try:
        os.rename(name, new_name, src_dir_fd=directory, dst_dir_fd=target)
    except PermissionError:
        _make_movable(directory, name)
        os.rename(name, new_name, src_dir_fd=directory, dst_dir_fd=target)


def _make_movable(directory: int, name: str) -> None:
    """A command may have made the directories read-only that the move writes to."""
    os.chmod(f"/proc/self/fd/{directory}", stat.S_IMODE(os.fstat(directory).st_mode) | 0o700)
    found = os.lstat(name, dir_fd=directory)
    if stat.S_ISDIR(found.st_mode):
        _unlock(directory, name, found)


def _unlock(directory: int, name: str, found: os.stat_result) -> None:
    below = os.open(name, _STEP, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{below}", stat.S_IMODE(found.st_mode) | 0o700)
    finally:
        os.close(below)


@contextmanager
def listed(directory: int, name: str) -> Iterator[int]:
    """A directory, open for listing. Raises OSError."""
    descriptor = os.open(name, _LIST, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(directory: int, name: str) -> Iterator[int]:
    """A file, open for reading. Raises OSError."""
    descriptor = os.open(name, _READ, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class Room:
    """Bytes and entries that may still be copied; holes in files are free. Raises TooLarge."""

    size: int
    entries: int = 10_000
    deepest: int = 64

    def take(self, *, size: int = 0, entries: int = 0) -> None:
        self.size -= size
        self.entries -= entries
        if self.size < 0 or self.entries < 0:
            raise TooLarge


def copy(directory: int, name: str, target: int, new_name: str, room: Room, depth: int = 0) -> None:
    """Copy a file, a link, or a directory with these in it. Devices, pipes and sockets have no content to copy."""
    room.take(entries=1)
    if depth > room.deepest:
        raise TooLarge
    found = os.lstat(name, dir_fd=directory)
    owner = (found.st_uid, found.st_gid)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=directory), new_name, dir_fd=target)
    elif stat.S_ISREG(found.st_mode):
        descriptor = os.open(new_name, _NEW, 0o600, dir_fd=target)
        with os.fdopen(descriptor, "wb", buffering=0), opened_file(directory, name) as source:
            _copy_data(source, descriptor, room)
            _set_owner_and_mode(descriptor, found.st_mode, owner)
    elif stat.S_ISDIR(found.st_mode):
        _unlock(directory, name, found)
        os.mkdir(new_name, 0o700, dir_fd=target)
        with listed(directory, name) as below, listed(target, new_name) as made:
            for each in os.listdir(below):
                copy(below, each, made, each, room, depth + 1)
            _set_owner_and_mode(made, found.st_mode, owner)


def _copy_data(source: int, target: int, room: Room) -> None:
    size = os.fstat(source).st_size
    for start, end in data_ranges(source, size):
        at = start
        while at < end and (piece := os.pread(source, min(_CHUNK, end - at), at)):
            room.take(size=len(piece))
            os.pwrite(target, piece, at)
            at += len(piece)
    os.ftruncate(target, size)


def remove(directory: int, name: str) -> None:
    """Remove a file, or a directory with all below it, however deep: nested directories are moved up first."""
    found = os.lstat(name, dir_fd=directory)
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=directory)
        return
    _unlock(directory, name, found)
    with listed(directory, name) as top:
        while names := os.listdir(top):
            for each in names:
                _remove_flat(top, each, top)
    os.rmdir(name, dir_fd=directory)


def _remove_flat(directory: int, name: str, top: int) -> None:
    found = os.lstat(name, dir_fd=directory)
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=directory)
        return
    _unlock(directory, name, found)
    if directory != top:
        os.rename(name, secrets.token_hex(8), src_dir_fd=directory, dst_dir_fd=top)
        return
    with listed(directory, name) as below:
        for each in os.listdir(below):
            _remove_flat(below, each, top)
    os.rmdir(name, dir_fd=directory)
