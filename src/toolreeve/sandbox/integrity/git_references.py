"""Git references: paths in writable roots that the settings of repositories name.

They are guarded as if the guard table named them, for as long as the settings do. Only settings that no command wrote
count.
"""

import os
from collections.abc import Iterable, Iterator

from toolreeve.core import git_references
from toolreeve.core.guarded_paths import Content, Guarded, GuardTable, is_within

_BY: dict[Content | None, str] = {None: "git runs it", "program": "git runs it"}


class GitReferences:
    """Paths are absolute, as written and as resolved."""

    def __init__(self, guards: GuardTable) -> None:
        self._guards = guards
        self._by_settings: dict[str, dict[str, Content | None]] = {}
        self._worktrees: dict[str, tuple[str, ...]] = {}
        self._all: dict[str, Content | None] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._all

    def find(self, path: str) -> Guarded | None:
        """What guards a path that settings name, or that lies in a directory they name."""
        if not self._all:
            return None
        around = path
        while len(around) > 1:
            if around in self._all:
                content = self._all[around]
                return Guarded(around.count("/"), _BY.get(content, "git obeys it"), content)
            around = os.path.dirname(around)
        return None

    def update(self, settings: str, data: bytes | None, linked: Iterable[str] = ()) -> frozenset[str]:
        """Settings have this content now, or are gone. Returns the paths that no settings referred to before.

        `linked` are further working trees of the repository.
        """
        before = self._all.keys()
        worktrees = self._worktrees_of(settings, data or b"", linked)
        found = dict(self._resolve(settings, data or b"", worktrees))
        if found:
            self._by_settings[settings] = found
        else:
            self._by_settings.pop(settings, None)
        self._all = {path: content for each in self._by_settings.values() for path, content in each.items()}
        for path, content in found.items():
            if content == "config":
                self._worktrees.setdefault(path, worktrees)
        return frozenset(self._all.keys() - before)

    def _worktrees_of(self, settings: str, data: bytes, linked: Iterable[str]) -> tuple[str, ...]:
        """Included settings have the working trees of the settings that include them."""
        if settings in self._worktrees:
            return self._worktrees[settings]
        repository = os.path.dirname(settings)
        is_inside = os.path.basename(repository).casefold() == ".git"
        trees = [os.path.dirname(repository) if is_inside else repository, *linked]
        if named := git_references.worktree(data):
            trees.append(os.path.join(repository, named))
        return tuple(trees)

    def _resolve(self, settings: str, data: bytes, worktrees: tuple[str, ...]) -> Iterator[tuple[str, Content | None]]:
        for reference in git_references.leads(data):
            bases = (os.path.dirname(settings),) if reference.beside else worktrees
            for path in self._absolute(reference.path, bases):
                if not (reference.content == "program" and os.path.isdir(path)):
                    yield path, reference.content

    def _absolute(self, written: str, bases: tuple[str, ...]) -> Iterator[str]:
        if not written or "\0" in written:
            return
        if written.startswith("~/"):
            bases = self._guards.homes
            written = written[2:]
        for base in bases:
            path = os.path.normpath(os.path.join(base, written))
            real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            yield from filter(self._is_guardable, {path, real})

    def _is_guardable(self, path: str) -> bool:
        root = self._guards.root_of(path)
        if root not in self._guards.roots or any(is_within(each, path) for each in self._guards.roots):
            return False
        return not self._guards.is_allowed(path, root)
