"""Reads open files and directories, by descriptor only.

Nothing here takes a path: every descriptor has passed `Paths`.
"""

import heapq
import os
import stat
import time
from collections.abc import Callable, Iterator

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Kind
from toolreeve.guard.files.errors import failed, from_system, invalid

MAX_LISTED = 1_000_000
MAX_LISTING_SECONDS = 10.0
_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class OpenFile:
    __slots__ = ("_descriptor", "path", "size")

    def __init__(self, descriptor: int, path: str, shown: str) -> None:
        self._descriptor = descriptor
        self.path = path
        try:
            self.size = require_regular(os.fstat(descriptor), shown).st_size
        except ToolError:
            os.close(descriptor)
            raise

    def read(self, offset: int, limit: int) -> bytes:
        try:
            return os.pread(self._descriptor, limit, offset)
        except OSError as problem:
            raise from_system(problem, self.path, ErrorCode.READ_ERROR) from None

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def require_regular(
    found: os.stat_result, shown: str, *, otherwise: ErrorCode = ErrorCode.READ_ERROR
) -> os.stat_result:
    if stat.S_ISREG(found.st_mode):
        return found
    if stat.S_ISDIR(found.st_mode):
        raise failed(otherwise, shown, "is a directory, not a file")
    raise invalid(shown, f"is {_SPECIAL.get(stat.S_IFMT(found.st_mode), 'not a regular file')}, not a regular file")


def kind_of(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.OTHER


def first_entries(
    descriptor: int, *, limit: int, after: str, wanted: Callable[[str], bool]
) -> tuple[list["os.DirEntry[str]"], int | None]:
    """The entries that sort first after `after`, one more than `limit` if there are more, and the number of wanted
    entries: None when there are too many to look at."""
    total: int | None = 0
    ends = time.monotonic() + MAX_LISTING_SECONDS

    def candidates(entries: Iterator["os.DirEntry[str]"]) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        nonlocal total
        seen = counted = 0
        for seen, entry in enumerate(entries, start=1):
            name = entry.name
            if wanted(name):
                counted += 1
                if name > after:
                    yield name, entry
            if seen >= MAX_LISTED or (not seen % 1024 and time.monotonic() > ends):
                total = None
                return
        total = counted

    with os.scandir(descriptor) as entries:
        first = heapq.nsmallest(limit + 1, candidates(entries))
    return [entry for _, entry in first], total
