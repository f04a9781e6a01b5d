"""Landlock: file access rights that a process gives up, whatever is mounted.

Every right that the kernel's version can handle is handled; what is not granted is refused.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from functools import cache

from toolreeve.sandbox.kernel import syscalls

_RIGHTS = [
    "execute",
    "write_file",
    "read_file",
    "read_dir",
    "remove_dir",
    "remove_file",
    "make_char",
    "make_dir",
    "make_reg",
    "make_sock",
    "make_fifo",
    "make_block",
    "make_sym",
    "refer",
    "truncate",
    "ioctl_dev",
]
_BIT = {name: 1 << position for position, name in enumerate(_RIGHTS)}
_HANDLED_BY_VERSION = (0, 13, 14, 15, 15, 16)
_VERSION_WITH_NETWORK = 4
VERSION_WITH_SCOPES = 6
_SCOPES = 3  # abstract unix sockets and signals
_PATH_BENEATH = 1
_ASK_VERSION = 1

READ = _BIT["execute"] | _BIT["read_file"] | _BIT["read_dir"]
RUN = _BIT["execute"]
LOOK = _BIT["read_file"] | _BIT["read_dir"]
USE_DEVICE = _BIT["read_file"] | _BIT["write_file"] | _BIT["truncate"]
USE_TERMINAL = USE_DEVICE | _BIT["ioctl_dev"] | _BIT["read_dir"]
_FOR_FILES = _BIT["execute"] | _BIT["write_file"] | _BIT["read_file"] | _BIT["truncate"] | _BIT["ioctl_dev"]
_NEVER = _BIT["make_char"] | _BIT["make_block"] | _BIT["ioctl_dev"]
_ALL = (1 << len(_RIGHTS)) - 1
WRITE = _ALL & ~_NEVER


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def version() -> int:
    """The version of Landlock here; 0 where there is none."""
    try:
        return syscalls.call("landlock_create_ruleset", None, 0, _ASK_VERSION)
    except OSError:
        return 0


class Ruleset:
    """Grants are added, then the process that gives up the rest enforces it."""

    def __init__(self) -> None:
        found = version()
        if not found:
            raise OSError("this kernel has no Landlock, or it was not enabled at boot (lsm=)")
        self._handled = (1 << _HANDLED_BY_VERSION[min(found, len(_HANDLED_BY_VERSION) - 1)]) - 1
        scopes = _SCOPES if found >= VERSION_WITH_SCOPES else 0
        size = 8
        if found >= _VERSION_WITH_NETWORK:
            size = 16
        if scopes:
            size = 24
        attributes = struct.pack("=QQQ", self._handled, 0, scopes)[:size]
        buffer = ctypes.create_string_buffer(attributes, size)
        self.descriptor = syscalls.call("landlock_create_ruleset", buffer, size, 0)

    def grant(self, rights: int, paths: Iterable[str]) -> None:
        """Paths that do not exist are skipped."""
        for path in paths:
            try:
                parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                self._grant(rights, parent)
            finally:
                os.close(parent)

    def _grant(self, rights: int, parent: int) -> None:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _FOR_FILES
        rule = _Rule(rights & self._handled, parent)
        syscalls.call("landlock_add_rule", self.descriptor, _PATH_BENEATH, ctypes.byref(rule), 0)

    def enforce(self) -> None:
        """For this process and all it starts, for ever. `no_new_privs` must be set."""
        syscalls.call("landlock_restrict_self", self.descriptor, 0)
