"""Files reached by descriptor, step by step beneath a root, through no link.

Whatever a name was swapped for meanwhile, nothing outside the root is opened, moved or removed.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20
_LOOK = 0o500


class TooLarge(Exception):
    """More than is copied."""


@contextmanager
def parent(root: str, path: str) -> Iterator[tuple[int, str]]:
    """The open directory that holds an absolute path below a root, and the path's last name. Raises OSError."""
    with unlocked(root, os.path.dirname(path)) as directory:
        yield directory, os.path.basename(path)


@contextmanager
def unlocked(root: str, path: str) -> Iterator[int]:
    """An open directory that is a root or lies below it. Where its mode, or one on the way, keeps out the owner that we
    are, it is opened meanwhile and gets its mode back. Raises OSError."""
    opened: list[tuple[int, int]] = []
    try:
        opened.append(_open_to_look(root, None))
        for name in filter(None, path[len(root.rstrip("/")) + 1 :].split("/")):
            opened.append(_open_to_look(name, opened[-1][0]))
        yield opened[-1][0]
    finally:
        for directory, mode in reversed(opened):
            if stat.S_IMODE(os.fstat(directory).st_mode) == mode | _LOOK != mode:
                os.chmod(f"/proc/self/fd/{directory}", mode)
            os.close(directory)


def _open_to_look(name: str, directory: int | None) -> tuple[int, int]:
    """A directory, and the mode that it had."""
    descriptor = os.open(name, _STEP, dir_fd=directory)
    place = f"/proc/self/fd/{descriptor}"
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if not os.access(place, os.R_OK | os.X_OK, effective_ids=True):
        with suppress(PermissionError):  # it is not ours to open, and not a command's either
            os.chmod(place, mode | _LOOK)
    return descriptor, mode


def read(directory: int, name: str, most: int) -> bytes | None:
    """A regular file's content; None if it is longer, or is no such file. Raises OSError."""
    descriptor = os.open(name, _READ, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = b"".join(iter(lambda: os.read(descriptor, _PIECE), b"")) if _fits(descriptor, most) else None
    finally:
        os.close(descriptor)
    return data


def _fits(descriptor: int, most: int) -> bool:
    return os.fstat(descriptor).st_size <= most


def names(directory: int, name: str) -> list[str]:
    """What is in a directory. Raises OSError."""
    descriptor = os.open(name, _LIST, dir_fd=directory)
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def write_new(directory: int, name: str, data: bytes, mode: int, owner: tuple[int, int]) -> None:
    """Raises FileExistsError if the name is taken."""
    descriptor = os.open(name, _NEW, mode & 0o777, dir_fd=directory)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        _give(descriptor, mode, owner)


def _give(descriptor: int, mode: int, owner: tuple[int, int]) -> None:
    with suppress(PermissionError):  # only root gives files away
        os.fchown(descriptor, *owner)
    os.fchmod(descriptor, mode & 0o777)


def move(directory: int, name: str, target: int, new_name: str, *, most: int) -> None:
    """Rename, or copy and remove where the target is another file system. Raises OSError, and TooLarge before any
    change if more than `most` bytes would have to be copied."""
    try:
        _rename(directory, name, target, new_name)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        if size(directory, name) > most:
            raise TooLarge from None
        copy(directory, name, target, new_name)
        remove(directory, name)


def _rename(directory: int, name: str, target: int, new_name: str) -> None:
    try:
        os.rename(name, new_name, src_dir_fd=directory, dst_dir_fd=target)
    except PermissionError:
        _make_movable(directory, name)
        os.rename(name, new_name, src_dir_fd=directory, dst_dir_fd=target)


def _make_movable(directory: int, name: str) -> None:
    """A command may have taken the right to write from the directories that the move has to write to."""
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
def _opened(directory: int, name: str) -> Iterator[int]:
    descriptor = os.open(name, _LIST, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def size(directory: int, name: str) -> int:
    """The bytes in a file, or in all files of a directory."""
    found = os.lstat(name, dir_fd=directory)
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    _unlock(directory, name, found)
    with _opened(directory, name) as below:
        return sum(size(below, each) for each in os.listdir(below))


def copy(directory: int, name: str, target: int, new_name: str) -> None:
    """A file, a link, or a directory with all of these in it. Devices, pipes and sockets have no content to copy."""
    found = os.lstat(name, dir_fd=directory)
    owner = (found.st_uid, found.st_gid)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=directory), new_name, dir_fd=target)
    elif stat.S_ISREG(found.st_mode):
        write_new(target, new_name, read(directory, name, found.st_size) or b"", found.st_mode, owner)
    elif stat.S_ISDIR(found.st_mode):
        os.mkdir(new_name, 0o700, dir_fd=target)
        with _opened(directory, name) as below, _opened(target, new_name) as made:
            for each in os.listdir(below):
                copy(below, each, made, each)
            _give(made, found.st_mode, owner)


def remove(directory: int, name: str) -> None:
    """A file, or a directory with all that is in it."""
    found = os.lstat(name, dir_fd=directory)
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=directory)
        return
    _unlock(directory, name, found)
    with _opened(directory, name) as below:
        for each in os.listdir(below):
            remove(below, each)
    os.rmdir(name, dir_fd=directory)
