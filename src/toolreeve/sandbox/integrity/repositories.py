"""Git repositories in watched directories, and the guards of their paths.

A repository is recognized by its name, `.git`, or by its content, whatever it is called. Once known it stays one for as
long as its directory exists: a command that removes `HEAD` for a moment opens nothing.
"""

import os
from collections.abc import Collection

from toolreeve.core import guarded_paths as table
from toolreeve.core.guarded_paths import Guarded, GuardTable
from toolreeve.sandbox.integrity.git_references import GitReferences
from toolreeve.sandbox.integrity.path_table import PathTable


class Repositories:
    """Repositories that are recognized by their content are added; those named `.git` need not be."""

    def __init__(self, guards: GuardTable) -> None:
        self._guards = guards
        self._known: PathTable[None] = PathTable()

    def anew(self) -> "Repositories":
        """The repositories that still exist, for listing everything again."""
        again = Repositories(self._guards)
        for path in self._known:
            if os.path.isdir(path) and not os.path.islink(path):
                again._known[path] = None
        return again

    def __contains__(self, directory: str) -> bool:
        return directory in self._known

    def add_if_one(self, directory: str, names: Collection[str]) -> bool:
        """Whether a directory is a repository by its casefolded names and was not known yet. A submodule needs no
        `HEAD`."""
        if directory in self._known:
            return False
        is_one = table.is_repository(names)
        if not is_one and "/.git/modules/" in directory.casefold():
            is_one = "config" in names and "objects" in names
        if is_one:
            self._known[directory] = None
        return is_one

    def stores(self) -> tuple[str, ...]:
        """The directories with the content of files."""
        found = (f"{path}/{name}" for path in self._known for name in table.REPOSITORY_CONTENT)
        return tuple(sorted(filter(os.path.isdir, found)))

    def discard_below(self, top: str) -> None:
        for path in self._known.below(top):
            del self._known[path]

    def guard_of(self, path: str, references: GitReferences) -> Guarded | None:
        """What guards an absolute path now."""
        found = self._find(path, references)
        if found is None or not found.liftable:
            return found
        root = self._guards.root_of(path)
        return None if root is not None and self._guards.is_allowed(path, root) else found

    def _find(self, path: str, references: GitReferences) -> Guarded | None:
        found = self._guards.guarded(path)
        named = None if found is None else found.repository
        if named is not None and table.outermost(path, named) not in self._known:
            found = None
        return found or self._find_inside(path) or references.find(path) or self._find_link(path)

    def _find_inside(self, path: str) -> Guarded | None:
        around = os.path.dirname(path)
        for _ in range(3):
            if around in self._known:
                folded = [name.casefold() for name in path.split("/")[1:]]
                return table.find_in_repository(folded, around.count("/"))
            around = os.path.dirname(around)
        return None

    def _find_link(self, path: str) -> Guarded | None:
        repository = self._around(os.path.dirname(path))
        root = self._guards.root_of(path)
        if repository is None or root is None or not os.path.islink(path):
            return None
        if self._guards.is_allowed(path, root):
            return None
        names = path[len(repository) + 1 :].split("/")
        return table.find_link_in_repository(names, path.count("/"), named_git=_is_named_git(repository))

    def _around(self, directory: str) -> str | None:
        """The innermost repository that a directory is or lies in."""
        while len(directory) > 1:
            if _is_named_git(directory) or directory in self._known:
                return directory
            directory = directory[: directory.rindex("/")]
        return None

    def has_bulk(self, directory: str) -> bool:
        """Whether a directory lies in the part of a repository where only links are guarded."""
        repository = self._around(directory)
        if repository is None or repository == directory:
            return False
        return directory[len(repository) + 1 :].split("/")[0].casefold() in table.REPOSITORY_BULK

    def is_near(self, directory: str) -> bool:
        """Whether more than its name decides whether a path in the directory is guarded."""
        return (
            directory in self._known
            or os.path.dirname(directory) in self._known
            or "/.git/" in f"{directory}/".casefold()
        )


def _is_named_git(directory: str) -> bool:
    return directory[-5:].casefold() == "/.git"
