"""View of the tree as it would be after commits were undone.

Undo compares with it before it changes anything: what a commit would restore lies in its stage, and is read there.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from toolreeve.trial import tree
from toolreeve.trial.journal import CommitJournal, CommitPlan, CommittedPath

_CHANGED = "changed since"
_TAKEN = "another file is there now"
_GONE = "the former content is gone"
_STRANGER = "is new in a directory that would go"
_UNREADABLE = "cannot be read"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Staged(NamedTuple):
    """A path that a commit would restore: `name` in its stage."""

    number: int
    stage: str
    path: str
    name: str


class CommitView:
    """`toolreeve.core.kept_commits.TreeView` over the stages of commits."""

    def __init__(self, journal: CommitJournal, disk: Callable[[str], str | None]) -> None:
        self._journal = journal
        self._disk = disk
        self._count = 0
        self._set: dict[str, tuple[int, str | None]] = {}
        self._staged: dict[str, _Staged] = {}

    def set(self, path: str, fingerprint: str | None) -> None:
        self._count += 1
        self._set[path] = (self._count, fingerprint)

    def toggle(self, commit: str) -> None:
        plan = self._journal.read(commit)
        if plan is None:
            return
        self._count += 1
        for swap in plan.swaps:
            if swap.after is None:
                path = _absolute(plan, swap.path)
                self._staged[path] = _Staged(self._count, plan.stage, path, swap.name)

    def fingerprint(self, path: str) -> str | None:
        staged = self._restored(path)
        number, known = self._set.get(path, (0, None))
        if number > (0 if staged is None else staged.number):
            return known
        if staged is None:
            return self._disk(path)
        with _opened(staged.stage) as stage:
            return tree.fingerprint(stage, f"{staged.name}{path.removeprefix(staged.path)}")

    def _restored(self, path: str) -> _Staged | None:
        """The latest commit that would restore a path, or a directory around it."""
        found = [self._staged[each] for each in _around(path) if each in self._staged]
        return max(found, key=lambda each: each.number, default=None)

    def conflicts(self, commit: str, *, undo: bool) -> Sequence[tuple[str, str]]:
        plan = self._journal.read(commit)
        if plan is None:
            return [(commit, "the former content was not kept: it is too old")]
        try:
            with _opened(plan.root) as root, _opened(plan.stage) as stage:
                return [
                    *self._changed(plan, root, undo=undo),
                    *(self._strangers(plan) if undo else ()),
                    *_gone(plan, stage, undo=undo),
                ]
        except (OSError, tree.TooMany) as problem:
            return [(plan.root, f"{_UNREADABLE}: {problem}")]

    def _changed(self, plan: CommitPlan, root: int, *, undo: bool) -> Iterator[tuple[str, str]]:
        units = {swap.path for swap in plan.swaps if swap.after is None}
        for each in plan.paths:
            path = _absolute(plan, each.path)
            if undo and self._is_as_committed(each, path, root):
                continue
            wanted = each.after if undo else each.before
            if not undo and each.path not in units:
                continue  # it comes with the directory around it
            if not _agrees(self.fingerprint(path), wanted):
                yield path, _TAKEN if wanted is None else _CHANGED

    def _is_as_committed(self, each: CommittedPath, path: str, root: int) -> bool:
        """Whether the very file that was committed is in its place: then its content need not be read."""
        if each.new is None or path in self._set or self._restored(path) is not None:
            return False
        folder, _, name = each.path.rpartition("/")
        try:
            with tree.directory_at(root, folder) as directory:
                found = tree.look(directory, name)
        except OSError:
            return False
        return found is not None and each.new.is_same(tree.identity_of(found))

    def _strangers(self, plan: CommitPlan) -> Iterator[tuple[str, str]]:
        """What others put into a directory that would go with the commit."""
        known = {_absolute(plan, each.path) for each in plan.paths}
        folders = {each.path for each in plan.paths if each.after == "directory"}
        for swap in plan.swaps:
            if swap.path not in folders or swap.after is not None:
                continue
            for path in self._below(_absolute(plan, swap.path)):
                if path not in known and self.fingerprint(path) is not None:
                    yield path, _STRANGER

    def _below(self, path: str) -> Iterator[str]:
        """Every path below a directory of the view, and more that are not in it any more."""
        staged = self._restored(path)
        top = path if staged is None else f"{staged.stage}/{staged.name}{path.removeprefix(staged.path)}"
        with _opened(os.path.dirname(top)) as directory:
            name = os.path.basename(top)
            if tree.look(directory, name) is None:
                return
            yield from (f"{path}{each.path.removeprefix(name)}" for each in tree.walk(directory, name))


def _gone(plan: CommitPlan, stage: int, *, undo: bool) -> Iterator[tuple[str, str]]:
    for swap in plan.swaps:
        kept = swap.old if undo else swap.new
        if swap.after is None and kept is not None and tree.look(stage, swap.name) is None:
            yield _absolute(plan, swap.path), _GONE


def _agrees(found: str | None, wanted: str | None) -> bool:
    if wanted is None or found is None:
        return found is wanted
    if wanted == "directory" or wanted.startswith("tree:"):
        return found.startswith("directory")
    return found == wanted


def _absolute(plan: CommitPlan, path: str) -> str:
    return f"{plan.root.rstrip('/')}/{path}"


def _around(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, _OPEN)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
