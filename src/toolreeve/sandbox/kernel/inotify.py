"""Inotify by ctypes: one descriptor, its watches, and its pending events."""

import ctypes
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Iterator
from typing import NamedTuple

from toolreeve.sandbox.integrity.path_table import PathTable

MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000
IS_DIRECTORY = 0x4000_0000

_ONLY_DIRECTORY = 0x0100_0000
_DO_NOT_FOLLOW = 0x0200_0000
_EXCLUDE_UNLINKED = 0x0400_0000

NAMES = CREATE | MOVED_FROM | MOVED_TO | DELETE | DELETE_SELF | MOVE_SELF
NAMES |= _ONLY_DIRECTORY | _DO_NOT_FOLLOW | _EXCLUDE_UNLINKED
"""Events of the names in a directory."""

CONTENT = MODIFY | CLOSE_WRITE | ATTRIB | _DO_NOT_FOLLOW
"""Events of a file, by whichever of its names; closing reports what was written through a mapping."""

_HEADER = struct.Struct("iIII")
_BUFFER = 1 << 18
_SIZE = struct.Struct("=i")
_NO_SIZE = _SIZE.pack(0)

MOST_QUEUED = 1 << 16
"""After so many events, all that were pending when the first was read have been read; the kernel's default is
16,384."""

_library = ctypes.CDLL(None, use_errno=True)


class InotifyEvent(NamedTuple):
    watch: int
    mask: int
    name: str


class Inotify:
    """Raises OSError where the machine has none, or none left."""

    def __init__(self) -> None:
        make = getattr(_library, "inotify_init1", None)
        if make is None:
            raise OSError(errno.ENOSYS, "this system has no inotify")
        self.descriptor = make(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _problem()

    def add(self, path: str, mask: int) -> int:
        """The number of the watch. Raises OSError."""
        number: int = _library.inotify_add_watch(self.descriptor, os.fsencode(path), ctypes.c_uint32(mask))
        if number < 0:
            raise _problem()
        return number

    def remove(self, watch: int) -> None:
        _library.inotify_rm_watch(self.descriptor, watch)  # it may be gone already

    def read(self) -> bytes:
        """Pending events, up to a buffer full. Cheap if there is none: this is called before each command."""
        (pending,) = _SIZE.unpack(fcntl.ioctl(self.descriptor, termios.FIONREAD, _NO_SIZE))
        return os.read(self.descriptor, min(pending, _BUFFER)) if pending else b""

    def close(self) -> None:
        os.close(self.descriptor)


def events(data: bytes) -> Iterator[InotifyEvent]:
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        name = data[at : at + length]
        at += length
        yield InotifyEvent(watch, mask, os.fsdecode(name.rstrip(b"\0")))


def _problem() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


class Watches:
    """The path of each watch. `shortage` says why not everything can be watched; nothing fails for it.

    A file has one watch, whichever of its names is known.
    """

    def __init__(self) -> None:
        self.shortage = ""
        self._inotify: Inotify | None = None
        self._paths: dict[int, str] = {}
        self._numbers: PathTable[int] = PathTable()
        self._directories: set[int] = set()

    def open(self) -> None:
        try:
            self._inotify = Inotify()
        except OSError as problem:
            self.shortage = f"no inotify ({problem.strerror}): all directories are listed after each command"

    def fileno(self) -> int:
        """-1 where this machine has no inotify."""
        return -1 if self._inotify is None else self._inotify.descriptor

    @property
    def directories(self) -> int:
        """How many directories are watched."""
        return len(self._directories)

    def path(self, number: int) -> str | None:
        return self._paths.get(number)

    def read(self) -> bytes:
        return b"" if self._inotify is None else self._inotify.read()

    def add(self, path: str, mask: int) -> None:
        if self._inotify is None:
            return
        try:
            number = self._inotify.add(path, mask)
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.ENOMEM):
                self.shortage = "no more inotify watches (fs.inotify.max_user_watches): all directories are listed"
                self.shortage += " after each command"
            return
        if (replaced := self._numbers.get(path, number)) != number:
            self._remove(replaced)
        self.forget(number)
        self._paths[number] = path
        if mask == NAMES:
            self._directories.add(number)
        self._numbers[path] = number

    def forget(self, number: int) -> None:
        """The kernel has removed it."""
        path = self._paths.pop(number, None)
        self._directories.discard(number)
        if path is not None and self._numbers.get(path) == number:
            del self._numbers[path]

    def remove_below(self, top: str) -> None:
        """The watches of a path and all below it."""
        for path in self._numbers.below(top):
            self._remove(self._numbers[path])

    def remove_all(self) -> None:
        """Pending events are dropped with them."""
        for number in list(self._paths):
            self._remove(number)
        while self.read():
            continue

    def _remove(self, number: int) -> None:
        self.forget(number)
        if self._inotify is not None:
            self._inotify.remove(number)

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
