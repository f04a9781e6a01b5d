"""Inotify by ctypes: one descriptor, its watches, and the events that wait on it."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

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
"""What happens to the names in a directory."""

CONTENT = MODIFY | CLOSE_WRITE | ATTRIB | _DO_NOT_FOLLOW
"""What happens to a file, by whichever of its names; closing tells of what was written through a mapping."""

_HEADER = struct.Struct("iIII")
_BUFFER = 1 << 18

_library = ctypes.CDLL(None, use_errno=True)


class Event(NamedTuple):
    watch: int
    mask: int
    name: str


class Inotify:
    """Raises OSError where the machine has none, or none left."""

    def __init__(self) -> None:
        make = getattr(_library, "inotify_init1", None)
        if make is None:
            raise OSError(errno.ENOSYS, "inotify is not there")
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
        _library.inotify_rm_watch(self.descriptor, watch)  # one that is gone already is as good

    def read(self) -> bytes:
        """What waits, up to a buffer full; empty if nothing does."""
        try:
            return os.read(self.descriptor, _BUFFER)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self.descriptor)


def events(data: bytes) -> Iterator[Event]:
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        name = data[at : at + length]
        at += length
        yield Event(watch, mask, os.fsdecode(name.rstrip(b"\0")))


def _problem() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
