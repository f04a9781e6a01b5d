"""System calls that Python lacks: `openat2`, `syncfs`, safe renames."""

import ctypes
import errno
import os
import struct
from functools import cache

_OPENAT2 = 437  # the same number on every architecture
_NO_XDEV = 0x01
_NO_SYMLINKS = 0x04
_BENEATH = 0x08
_SIZE = 24

_library = ctypes.CDLL(None, use_errno=True)
_syscall = _library.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_long]

_renameat2 = getattr(_library, "renameat2", None)
_NO_REPLACE = 1
_EXCHANGE = 2


class How:
    """The third argument of openat2, built once: flags, and neither a way out of the directory nor through a link;
    with `one_mount`, nor into another mount."""

    __slots__ = ("_buffer", "address")

    def __init__(self, flags: int, *, one_mount: bool = False) -> None:
        resolve = _BENEATH | _NO_SYMLINKS
        if one_mount:
            resolve |= _NO_XDEV
        self._buffer = ctypes.create_string_buffer(struct.pack("=QQQ", flags, 0, resolve), _SIZE)
        self.address = ctypes.addressof(self._buffer)


def open_beneath(directory: int, path: bytes, how: How) -> int:
    """A descriptor, or a negative errno: the caller's next step depends on it, so nothing is raised."""
    descriptor: int = _syscall(_OPENAT2, directory, path, how.address, _SIZE)
    return descriptor if descriptor >= 0 else -ctypes.get_errno()


@cache
def has_openat2() -> bool:
    """Whether this kernel and its seccomp filters allow openat2."""
    here = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        found = open_beneath(here, b".", How(os.O_PATH | os.O_CLOEXEC))
    finally:
        os.close(here)
    if found >= 0:
        os.close(found)
    return found >= 0 or -found not in (errno.ENOSYS, errno.EPERM, errno.EINVAL)


def rename_new(source: int, name: str, directory: int, new_name: str) -> None:
    """Rename between directories; FileExistsError if the new name is taken."""
    arguments = (source, os.fsencode(name), directory, os.fsencode(new_name), _NO_REPLACE)
    if _renameat2 is not None and _renameat2(*arguments) == 0:
        return
    number = errno.ENOSYS if _renameat2 is None else ctypes.get_errno()
    if number not in (errno.ENOSYS, errno.EINVAL):
        raise OSError(number, os.strerror(number))
    try:
        os.stat(new_name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=directory)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def exchange(source: int, name: str, directory: int, new_name: str) -> None:
    """Swap two existing names in one step. Raises OSError, also where the file system cannot."""
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if _renameat2(source, os.fsencode(name), directory, os.fsencode(new_name), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), new_name)


def sync_file_system(descriptor: int) -> None:
    """Write everything of the file system around an open file to disk. Raises OSError."""
    if _library.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
