"""Directory walker: breadth first, bounded, never following a link.

Every directory is opened beneath the one where the walk began, through no link, so a swap cannot lead it out.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from toolreeve.core.errors import ToolError
from toolreeve.core.files import Bounds
from toolreeve.core.openat2 import How, open_beneath
from toolreeve.core.secrets.paths import may_be_secret
from toolreeve.guard.files.paths import PASSING, READING
from toolreeve.guard.files.reader import OpenFile

_LISTING = READING | os.O_DIRECTORY | os.O_NOFOLLOW
_LIST = How(READING | os.O_DIRECTORY)


class WalkEntry:
    """An entry of the walk, readable while it is the current one."""

    __slots__ = ("_directory", "_entry", "name", "path")

    def __init__(self, entry: "os.DirEntry[str]", directory: int, path: str) -> None:
        self._entry = entry
        self._directory = directory
        self.name = entry.name
        self.path = path

    @property
    def is_dir(self) -> bool:
        return self._entry.is_dir(follow_symlinks=False)

    @property
    def is_link(self) -> bool:
        return self._entry.is_symlink()

    @property
    def is_file(self) -> bool:
        return self._entry.is_file(follow_symlinks=False)

    @property
    def size(self) -> int:
        try:
            return self._entry.stat(follow_symlinks=False).st_size
        except OSError:
            return 0  # gone since it was met

    def open(self) -> OpenFile | None:
        """The file itself, or None when it cannot be read: a search goes on without it."""
        try:
            return OpenFile(os.open(self.name, READING | os.O_NOFOLLOW, dir_fd=self._directory), self.path, self.path)
        except (OSError, ToolError):
            return None


class Walker:
    """Iterate to walk. `refused` says of an absolute path whether it is out of bounds; `cut` names the bound that was
    hit."""

    def __init__(
        self,
        descriptor: int,
        path: str,
        *,
        bounds: Bounds,
        hidden: bool,
        skip: frozenset[str],
        refused: Callable[[str], bool],
        use_openat2: bool,
    ) -> None:
        self._base = descriptor
        self.path = path
        self._bounds = bounds
        self._hidden = hidden
        self._skip = skip
        self._refused = refused
        self._use_openat2 = use_openat2
        self.cut = ""

    def __iter__(self) -> Iterator[WalkEntry]:
        ahead: deque[tuple[str, int]] = deque([("", 1)])
        left = self._bounds.entries
        ends = time.monotonic() + self._bounds.seconds
        deeper = False
        while ahead and not self.cut:
            below, depth = ahead.popleft()
            for entry in self._directory(below, left):
                left -= 1
                if left < 0 or (not left % 256 and time.monotonic() > ends):
                    self.cut = "entries" if left < 0 else "seconds"
                    break
                if entry.is_dir:
                    deeper = deeper or depth >= self._bounds.depth
                    if depth < self._bounds.depth:
                        ahead.append((entry.path, depth + 1))
                yield entry
            if ahead and time.monotonic() > ends:
                self.cut = "seconds"
        if deeper and not self.cut:
            self.cut = "depth"

    def __del__(self) -> None:
        os.close(self._base)

    def _directory(self, below: str, most: int) -> Iterator[WalkEntry]:
        descriptor = self._open(below)
        if descriptor is None:
            return
        try:
            with os.scandir(descriptor) as entries:
                found = sorted(islice(entries, most + 1), key=lambda entry: entry.name)
            for entry in found:
                if self._is_visible(entry, below):
                    yield WalkEntry(entry, descriptor, f"{below}/{entry.name}" if below else entry.name)
        finally:
            os.close(descriptor)

    def _is_visible(self, entry: "os.DirEntry[str]", below: str) -> bool:
        name = entry.name
        if name in self._skip or (not self._hidden and name[0] == "."):
            return False
        if entry.is_dir(follow_symlinks=False) or may_be_secret(name.casefold()):
            return not self._refused(os.path.join(self.path, below, name))
        return True

    def _open(self, below: str) -> int | None:
        """The directory at a relative path, or None when it has gone, may not be read or has become a link."""
        if self._use_openat2:
            found = open_beneath(self._base, os.fsencode(below or "."), _LIST)
            return found if found >= 0 else None
        try:
            return _open_steps(self._base, below.split("/") if below else ["."])
        except OSError:
            return None


def _open_steps(base: int, names: Sequence[str]) -> int:
    here = base
    try:
        for name in names[:-1]:
            following = os.open(name, PASSING, dir_fd=here)
            if here != base:
                os.close(here)
            here = following
        return os.open(names[-1], _LISTING, dir_fd=here)
    finally:
        if here != base:
            os.close(here)
