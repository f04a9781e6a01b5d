"""Neutral git: what repositories show to commands that nobody was asked about.

Their settings are covered by copies that hold inert keys only, and their hooks by nothing. So git runs nothing that a
repository names, whichever program starts it, in whichever directory, and whatever becomes of its environment. A
repository whose settings are inert needs no cover.
"""

from typing import NamedTuple

from toolreeve.core.git_config import MalformedGitConfig, active, inert_copy
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.integrity.assessment import worktrees_of
from toolreeve.sandbox.integrity.watch import Watch


class GitCovers(NamedTuple):
    """`contents`: files that show these bytes instead of their own. `hidden`: directories that are covered. `files` are
    their inodes: the cover of a file is lost when another takes its name."""

    contents: tuple[tuple[str, bytes], ...] = ()
    hidden: tuple[str, ...] = ()
    files: tuple[int, ...] = ()


def covers(watch: Watch, guards: GuardTable) -> GitCovers:
    """As things are now; ask again when `watch.version` has changed."""
    contents: list[tuple[str, bytes]] = []
    files: list[int] = []
    for path, (inode, data) in sorted(watch.settings().items()):
        shown = _shown(path, data, guards)
        if shown is not None:
            contents.append((path, shown))
            files.append(inode)
    return GitCovers(tuple(contents), tuple(sorted(watch.hooks())), tuple(files))


def _shown(path: str, data: bytes | None, guards: GuardTable) -> bytes | None:
    """None where the file may show itself. One that cannot be read shows nothing: git then knows its own defaults."""
    worktrees = worktrees_of(path.rpartition("/")[0], guards)
    try:
        if data is None or active(data, worktrees=worktrees):
            return inert_copy(data or b"", worktrees=worktrees)
    except MalformedGitConfig:
        return b""
    return None
