"""Staging: copies the chosen changes of a layer beside the real tree.

Nothing real is touched. What is staged has the owner, mode, times and attributes that it will have in its place.
"""

import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from toolreeve.trial import refusals, tree
from toolreeve.trial.harvest import Alteration, Harvest, TreeChange
from toolreeve.trial.journal import Attributes, CommittedPath, PathSwap
from toolreeve.trial.layer_reader import owner_of
from toolreeve.trial.tree import FileIdentity

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_PLACE = (Alteration.MODE, Alteration.TOUCH)
_PERMISSIONS = 0o3777


class Stage:
    """Copies into `stage`, an empty directory. `root` is the real tree."""

    def __init__(self, harvest: Harvest, root: int, stage: int) -> None:
        self._harvest = harvest
        self._upper = harvest.layer.upper
        self._root = root
        self._stage = stage
        found = os.fstat(root)
        self._owner = (found.st_uid, found.st_gid)
        self._self = (os.geteuid(), os.getegid())
        self._numbers = itertools.count()
        self._names: dict[str, str] = {}
        self._links: dict[int, str] = {}
        self._folders: list[tuple[str, os.stat_result]] = []
        self._parent: tuple[str, int] = ("", -1)
        self.paths: list[CommittedPath] = []

    def copy(self, changes: Sequence[TreeChange]) -> list[PathSwap]:
        """Stage the changes, which are sorted by path; returns the swaps in the order in which they are made."""
        try:
            swaps = [swap for each in changes if (swap := self._prepare(each)) is not None]
            self._finish_folders()
        finally:
            self._close_parent()
        return sorted(swaps, key=_order)

    def _prepare(self, change: TreeChange) -> PathSwap | None:
        """The swap of a change; None if it goes with the directory around it."""
        if change.kind in _IN_PLACE:
            return self._set_attributes(change)
        if change.kind is not Alteration.DELETE:
            self._names[change.path] = name = self._staged_name(change)
            self._copy(change, name)
        new = None if change.kind is Alteration.DELETE else self._look(self._names[change.path])
        self.paths.append(CommittedPath(path=change.path, before=change.before, after=change.after, new=new))
        if change.inside:
            return None
        name = self._names.get(change.path) or str(next(self._numbers))
        tree_of = change.before if change.before and change.before.startswith("tree:") else ""
        return PathSwap(path=change.path, name=name, old=_identity(change.old, exact=True), new=new, tree=tree_of)

    def _set_attributes(self, change: TreeChange) -> PathSwap | None:
        if change.new is None or change.old is None or (change.kind is Alteration.TOUCH and change.conflict):
            return None
        is_folder = change.is_directory
        before = Attributes(stat.S_IMODE(change.old.st_mode), 0 if is_folder else change.old.st_mtime_ns)
        after = Attributes(change.new.st_mode & _PERMISSIONS, 0 if is_folder else change.new.st_mtime_ns)
        old = _identity(change.old)
        return PathSwap(path=change.path, name="", old=old, new=old, before=before, after=after)

    def _staged_name(self, change: TreeChange) -> str:
        if not change.inside:
            return str(next(self._numbers))
        folder, _, name = change.path.rpartition("/")
        return f"{self._names[folder]}/{name}"

    def _look(self, name: str) -> FileIdentity | None:
        with self._place(name) as (directory, last):
            return _identity(tree.look(directory, last))

    @contextmanager
    def _place(self, name: str) -> Iterator[tuple[int, str]]:
        """The open directory of a staged name, and the last part of it. The last directory stays open."""
        folder, _, last = name.rpartition("/")
        if not folder:
            yield self._stage, last
            return
        if self._parent[0] != folder:
            self._close_parent()
            self._parent = (folder, tree.open_directory(self._stage, folder))
        yield self._parent[1], last

    def _close_parent(self) -> None:
        if self._parent[1] >= 0:
            os.close(self._parent[1])
        self._parent = ("", -1)

    def _copy(self, change: TreeChange, name: str) -> None:
        found = change.new
        if found is None:
            return
        with self._place(name) as (directory, last):
            if stat.S_ISLNK(found.st_mode):
                self._copy_link(change, directory, last, found)
            elif stat.S_ISDIR(found.st_mode):
                os.mkdir(last, 0o700, dir_fd=directory)
                self._folders.append((name, found))
            elif not self._link(change, directory, last, found):
                self._copy_file(change, directory, last, found)
                if found.st_nlink > 1:
                    self._links[found.st_ino] = name

    def _copy_link(self, change: TreeChange, directory: int, name: str, found: os.stat_result) -> None:
        os.symlink((change.after or "").removeprefix("link:"), name, dir_fd=directory)
        owner = owner_of(found, self._harvest.layer, self._owner)
        if owner != self._self:
            os.chown(name, *owner, dir_fd=directory, follow_symlinks=False)
        os.utime(name, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=directory, follow_symlinks=False)

    def _link(self, change: TreeChange, directory: int, name: str, found: os.stat_result) -> bool:
        """Another name of a file that is staged already, or of a real file that did not change."""
        if (staged := self._links.get(found.st_ino)) is not None:
            os.link(staged, name, src_dir_fd=self._stage, dst_dir_fd=directory, follow_symlinks=False)
            return True
        expected = self._harvest.untouched.get(change.links_to)
        if expected is None:
            return False
        folder, _, last = change.links_to.rpartition("/")
        with tree.directory_at(self._root, folder) as real:
            now = tree.look(real, last)
            if now is None or not expected.is_same(tree.identity_of(now)):
                return False
            os.link(last, name, src_dir_fd=real, dst_dir_fd=directory, follow_symlinks=False)
        return True

    def _copy_file(self, change: TreeChange, directory: int, name: str, found: os.stat_result) -> None:
        with tree.file_at(self._upper, change.path) as source:
            target = os.open(name, _NEW, 0o600, dir_fd=directory)
            try:
                tree.copy_data(source, target, found.st_size)
                for attribute in refusals.carried_attributes(os.listxattr(source)):
                    os.setxattr(target, attribute, os.getxattr(source, attribute))
                self._set_owner_and_mode(target, found)
            finally:
                os.close(target)

    def _set_owner_and_mode(self, target: int, found: os.stat_result) -> None:
        owner = owner_of(found, self._harvest.layer, self._owner)
        if owner != self._self:
            os.fchown(target, *owner)
        os.fchmod(target, found.st_mode & _PERMISSIONS)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))  # make and .pyc files go by it

    def _finish_folders(self) -> None:
        """Only now, because a mode may keep us out and every entry changes the times."""
        for name, found in reversed(self._folders):
            with tree.directory_at(self._stage, name) as descriptor:
                self._set_owner_and_mode(descriptor, found)


def _identity(found: os.stat_result | None, *, exact: bool = False) -> FileIdentity | None:
    return None if found is None else tree.identity_of(found, exact=exact)


def _order(swap: PathSwap) -> tuple[int, int, str]:
    """Permissions that let us in come first and those that keep us out last; deletions follow what is new."""
    depth = swap.path.count("/")
    if swap.after is not None:
        lets_in = swap.after.mode & 0o300 == 0o300
        return (0, depth, swap.path) if lets_in else (3, -depth, swap.path)
    return (2 if swap.new is None else 1, 0, swap.path)
