"""Temporary folders of a slot, empty for each command.

Nothing that one command leaves in them may be found by the next. What cannot be removed quickly is not removed at all:
the slot is dropped, and the kernel frees its folders.
"""

import errno
import itertools
import os
import stat
import sys
from collections.abc import Collection, Iterator, Mapping

_MOST_REMOVED = 2000
"""Entries that are removed one by one; for more, a new slot is cheaper."""


_FolderState = tuple[int, int, int]
"""Mode, time of the last change, entries: changes whenever the folder's entries, mode or attributes do."""


class Scratch:
    """`folders` maps each folder to the names in it that stay. `home` and `work` are two of them, `temporary` is
    $TMPDIR.

    `mounted`: each is its own tmpfs, where the size of a folder grows with the number of its entries.
    """

    def __init__(
        self, folders: Mapping[str, Collection[str]], *, home: str, work: str, temporary: str, mounted: bool
    ) -> None:
        self.environment = {"HOME": home, "TMPDIR": temporary}
        self.work = work
        self._folders = folders
        self._mounted = mounted
        self._first = {path: self._state(path) for path in folders}

    def _state(self, path: str) -> _FolderState:
        found = os.stat(path)
        entries = found.st_size if self._mounted else len(os.listdir(path))
        return found.st_mode, found.st_ctime_ns, entries

    def renew(self) -> bool:
        """Empty the folders. False where the slot must not be used again."""
        try:
            for path in self._folders:  # noqa: SIM110  # a generator costs memory in every slot
                if not self._renew(path, self._first[path]):
                    return False
            return True
        except OSError:
            return False

    def _renew(self, path: str, first: _FolderState) -> bool:
        found = self._state(path)
        if found == first:
            return True
        mode, _, entries = first
        if found[0] != mode or os.listxattr(path):
            return False
        wipe(path, keep=self._folders[path], most=_MOST_REMOVED)
        self._first[path] = self._state(path)
        return self._first[path][2] == entries


def wipe(folder: str, *, keep: Collection[str] = (), most: int | None = None) -> None:
    """Remove everything in a folder but `keep`, whatever the modes, the depth and the length of paths in it.

    Raises OSError where something cannot be removed, or where there are more than `most` entries.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    left = itertools.count(most or sys.maxsize, -1)
    try:
        while names := [name for name in os.listdir(top) if name not in keep]:
            for name in names:
                _remove(top, name, left)
    finally:
        os.close(top)


def _remove(top: int, name: str, left: Iterator[int]) -> None:
    """Nested folders are moved to the top, so that depth costs nothing."""
    if next(left) <= 0:
        raise OSError(errno.E2BIG, "too many entries to remove")
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return
    os.chmod(name, stat.S_IRWXU, dir_fd=top)
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        for inner in os.listdir(folder):
            if stat.S_ISDIR(os.stat(inner, dir_fd=folder, follow_symlinks=False).st_mode):
                os.chmod(inner, stat.S_IRWXU, dir_fd=folder)
                os.rename(inner, f".removed-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
            else:
                _remove(folder, inner, left)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
