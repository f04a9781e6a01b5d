"""Assessment of a guarded path that a command left: harmful or not.

What git itself writes for `init`, `clone`, `worktree add` and `submodule add` is harmless; all that is not known to be
harmless is harmful. Links are never harmless: their targets may change unseen.
"""

import os
import stat
from collections.abc import Callable, Iterator

from toolreeve.core import git_config
from toolreeve.core.guarded_content import JUDGED, find_new_harm
from toolreeve.core.guarded_paths import Guarded, GuardTable, is_within
from toolreeve.sandbox.integrity import beneath

Harm = tuple[str, str]
"""The path to quarantine, and why."""


def find_harm(
    path: str,
    guard: Guarded,
    guards: GuardTable,
    root: str,
    former: bytes | None = None,
    accept: Callable[[bytes], object] = lambda _: None,
) -> Iterator[Harm]:
    """`former` is the content before the command: what it already contained does not count. `accept` is called with
    content that was found harmless. A path that is gone does no harm. Raises OSError where it cannot be inspected."""
    try:
        with beneath.parent(root, path) as (directory, name):
            found = os.lstat(name, dir_fd=directory)
            if stat.S_ISLNK(found.st_mode):
                if former is None or os.fsencode(os.readlink(name, dir_fd=directory)) != former:
                    yield path, f"{guard.by}, and it is a link"
            elif guard.content == "link" or (guard.content == "program" and stat.S_ISDIR(found.st_mode)):
                return
            elif guard.content == "hooks" and guard.depth == path.count("/") and stat.S_ISDIR(found.st_mode):
                yield from ((f"{path}/{each}", "git runs it") for each in _hooks(beneath.names(directory, name)))
            elif guard.content == "hooks":
                if list(_hooks([name])):
                    yield path, "git runs it"
            elif guard.content in (None, "program") or not stat.S_ISREG(found.st_mode):
                yield path, guard.by
            elif why := _content_harm(path, guard, guards, directory, former, accept):
                yield path, why
    except (FileNotFoundError, NotADirectoryError):
        return


def _hooks(names: list[str]) -> Iterator[str]:
    return (name for name in names if not name.endswith(".sample"))


def _content_harm(
    path: str,
    guard: Guarded,
    guards: GuardTable,
    directory: int,
    former: bytes | None,
    accept: Callable[[bytes], object],
) -> str | None:
    name = os.path.basename(path)
    if os.lstat(name, dir_fd=directory).st_nlink > 1:
        return f"{guard.by}, and it has another name (a hard link)"
    data = beneath.read(directory, name, git_config.LARGEST)
    if data is None:
        return f"{guard.by}, and it is too large to be inspected"
    why = _data_harm(path, guard, guards, data, former)
    if why is None:
        accept(data)
    return why


def _data_harm(path: str, guard: Guarded, guards: GuardTable, data: bytes, former: bytes | None) -> str | None:
    if guard.content in JUDGED:
        worktrees = worktrees_of(os.path.dirname(path), guards)
        return find_new_harm(guard.content, os.path.basename(path), data, former, by=guard.by, worktrees=worktrees)
    return None if _is_good_pointer(path, git_config.read_pointer(data), guards) else "it points git elsewhere"


def worktrees_of(repository: str, guards: GuardTable) -> Callable[[str], bool]:
    """A repository's work tree may lie anywhere in the root of the repository."""

    def accepts(value: str) -> bool:
        tree = os.path.realpath(os.path.join(repository, value))
        return any(is_within(tree, root) and tree != root and is_within(repository, root) for root in guards.roots)

    return accepts


def _is_good_pointer(path: str, pointer: str | None, guards: GuardTable) -> bool:
    """Whether a `.git` file, `commondir` or `gitdir` is what `worktree add` or a submodule makes."""
    if pointer is None:
        return False
    directory = os.path.dirname(path)
    target = os.path.normpath(os.path.join(directory, pointer))
    match os.path.basename(path).casefold():
        case "commondir":
            parent = os.path.dirname(directory)
            return os.path.basename(parent) == "worktrees" and target == os.path.dirname(parent)
        case "gitdir":
            return any(is_within(target, root) for root in guards.roots) and os.path.basename(target) == ".git"
        case _:
            return os.path.realpath(target) == target and _is_nested(target, guards)


def _is_nested(repository: str, guards: GuardTable) -> bool:
    """Whether a repository lies inside another's `.git`, where its settings are guarded by name."""
    guard = guards.guarded(f"{repository}/config")
    return guard is not None and guard.content == "config" and "/.git/" in repository
