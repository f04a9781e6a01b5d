"""Swaps between a stage and the real tree, each one rename.

What was there before lands in the stage, so pre-images cost nothing and every swap can be repeated backwards. How far
a swap is shows in the stage itself, so all operations can be repeated after a crash.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolreeve.core.openat2 import exchange, rename_new
from toolreeve.trial import tree
from toolreeve.trial.journal import Attributes, PathSwap
from toolreeve.trial.tree import FileIdentity

MAX_OPEN = 128


class Conflict(Exception):
    """The real tree is not what the command saw, or what was shown to the person."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path!r} {reason}")
        self.path = path


class _Place(NamedTuple):
    directory: int
    name: str

    def look(self) -> FileIdentity | None:
        found = tree.look(self.directory, self.name)
        return None if found is None else tree.identity_of(found)


class Swapper:
    """Swaps between the open directories `root` and `stage`; parents are opened beneath the root, through no link and
    into no other mount."""

    def __init__(self, root: int, stage: int) -> None:
        self._root = root
        self._stage = stage
        self._folders: dict[str, int] = {}

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.popitem()[1])

    def verify(self, swaps: Iterable[PathSwap]) -> None:
        """Everything is exactly as it was harvested. Raises Conflict and OSError."""
        for swap in swaps:
            place = self._place(swap.path)
            found = tree.look(*place)
            now = None if found is None else tree.identity_of(found, exact=swap.after is None)
            if swap.after is not None and swap.old is not None and now is not None and now.inode == swap.old.inode:
                continue
            if now != swap.old:
                raise Conflict(swap.path, "was changed meanwhile by another program")

    def apply(self, swaps: Sequence[PathSwap]) -> None:
        """Swap everything in. Raises Conflict where something does not fit; then `revert` what was swapped."""
        for swap in swaps:
            try:
                self._forward(swap)
            except (OSError, tree.TooMany) as problem:
                reason = problem.strerror if isinstance(problem, OSError) else str(problem)
                raise Conflict(swap.path, f"cannot be changed: {reason}") from None

    def _forward(self, swap: PathSwap) -> None:
        if self.is_applied(swap):
            return
        place = self._place(swap.path)
        if swap.after is not None:
            self._set(swap, swap.after)
            return
        self._require_unchanged(swap, place)
        self.toggle(swap)
        if swap.old is not None and not swap.old.is_same(self._staged(swap).look()):
            self.toggle(swap)
            raise Conflict(swap.path, "was changed at this moment by another program")

    def _require_unchanged(self, swap: PathSwap, place: _Place) -> None:
        now = place.look()
        if now is None or swap.old is None:
            if now is not swap.old:
                raise Conflict(swap.path, "was made or removed meanwhile by another program")
            return
        if not swap.old.is_same(now):
            raise Conflict(swap.path, "was changed meanwhile by another program")
        if swap.tree:
            if tree.tree_fingerprint(place.directory, place.name) != swap.tree:
                raise Conflict(swap.path, "has entries that were changed meanwhile by another program")
        elif tree.is_open_for_writing(place.directory, place.name):
            raise Conflict(swap.path, "is open for writing in another program")

    def revert(self, swaps: Sequence[PathSwap]) -> bool:
        """Swap back what was swapped in. Returns whether nothing but what was staged is left in the stage: content of
        others is never overwritten."""
        is_clean = True
        for swap in reversed(swaps):
            if not self.is_applied(swap):
                continue
            if swap.before is not None:
                self._set(swap, swap.before)
                continue
            now = self._place(swap.path).look()
            is_ours = now is None if swap.new is None else swap.new.is_same(now)
            is_clean &= is_ours
            if is_ours or (swap.new is not None and swap.old is not None):
                self.toggle(swap)
        return is_clean

    def is_applied(self, swap: PathSwap) -> bool:
        if swap.after is not None:
            return self._has(swap, swap.after)
        staged = self._staged(swap).look()
        if swap.old is None:
            return staged is None
        return swap.old.is_same(staged)

    def toggle(self, swap: PathSwap) -> None:
        """Exchange what is staged with what is there; either may be nothing. Raises OSError."""
        if swap.after is not None and swap.before is not None:
            self._set(swap, swap.before if self.is_applied(swap) else swap.after)
            return
        place = self._place(swap.path)
        staged = self._staged(swap)
        here, there = place.look(), staged.look()
        if here is not None and there is not None:
            exchange(*staged, *place)
        elif there is not None:
            rename_new(*staged, *place)
        elif here is not None:
            rename_new(*place, *staged)

    def _set(self, swap: PathSwap, wanted: Attributes) -> None:
        with tree.entry_at(self._root, swap.path) as descriptor:
            found = os.fstat(descriptor)
            if swap.old is None or found.st_ino != swap.old.inode or stat.S_ISLNK(found.st_mode):
                raise Conflict(swap.path, "was replaced meanwhile by another program")
            path = f"/proc/self/fd/{descriptor}"
            os.chmod(path, wanted.mode)
            if wanted.mtime_ns:
                os.utime(path, ns=(found.st_atime_ns, wanted.mtime_ns))

    def _has(self, swap: PathSwap, wanted: Attributes) -> bool:
        found = tree.look(*self._place(swap.path))
        if found is None:
            return False
        return stat.S_IMODE(found.st_mode) == wanted.mode and wanted.mtime_ns in (0, found.st_mtime_ns)

    def _place(self, path: str) -> _Place:
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            if len(self._folders) >= MAX_OPEN:
                self.close()
            self._folders[folder] = tree.open_directory(self._root, folder)
        return _Place(self._folders[folder], name)

    def _staged(self, swap: PathSwap) -> _Place:
        return _Place(self._stage, swap.name)
