"""Temporary folders of a slot, empty for each command.

Nothing that one command leaves in them may be found by the next. What cannot be removed quickly is not removed at all:
the slot goes, and the kernel frees its folders.
"""

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from toolreeve.sandbox import process_tree

_QUICKLY = 2000
"""Entries that are removed one by one; a new slot is cheaper than more."""


class _State(NamedTuple):
    """Of a folder: it changes with its entries, its rights and its attributes."""

    mode: int
    changed: int
    entries: int


class Scratch:
    """`folders` with the names in each that stay. `home` and `work` are two of them, `temporary` is $TMPDIR.

    `mounted`: each is a tmpfs of its own, where the size of a folder tells how many entries it has.
    """

    def __init__(
        self, folders: Mapping[str, Collection[str]], *, home: str, work: str, temporary: str, mounted: bool
    ) -> None:
        self.environment = {"HOME": home, "TMPDIR": temporary}
        self.work = work
        self._folders = folders
        self._mounted = mounted
        self._first = {path: self._state(path) for path in folders}

    def _state(self, path: str) -> _State:
        found = os.stat(path)
        entries = found.st_size if self._mounted else len(os.listdir(path))
        return _State(found.st_mode, found.st_ctime_ns, entries)

    def renew(self) -> bool:
        """Empty what is not empty. False where the slot must not be used again."""
        try:
            return all(self._renew(path, first) for path, first in self._first.items())
        except OSError:
            return False

    def _renew(self, path: str, first: _State) -> bool:
        found = self._state(path)
        if found == first:
            return True
        if found.mode != first.mode or os.listxattr(path):
            return False
        process_tree.wipe(path, keep=self._folders[path], most=_QUICKLY)
        self._first[path] = self._state(path)
        return self._first[path].entries == first.entries
