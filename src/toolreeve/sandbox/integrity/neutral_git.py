"""Neutral git: what commands that need no approval see of repositories.

Settings are covered by copies with inert keys only, and hooks by empty folders. So git runs nothing that a repository
names, whichever program starts it, in whichever directory, and with whatever environment. A repository whose settings
are inert needs no cover.
"""

from typing import NamedTuple

from toolreeve.core.git_config import MalformedGitConfig, active, inert_copy
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.integrity.assessment import worktrees_of
from toolreeve.sandbox.integrity.watch import Watch


class GitCovers(NamedTuple):
    """`contents`: files that show these bytes instead of their own. `hidden`: directories that are covered. `files`:
    the inodes of the former, because the cover of a file is lost when another file takes its name."""

    contents: tuple[tuple[str, bytes], ...] = ()
    hidden: tuple[str, ...] = ()
    files: tuple[int, ...] = ()


def covers(watch: Watch, guards: GuardTable) -> GitCovers:
    """The current covers, valid until `watch.version` changes."""
    contents: list[tuple[str, bytes]] = []
    files: list[int] = []
    for path, (inode, data) in sorted(watch.settings().items()):
        replacement = _replacement(path, data, guards)
        if replacement is not None:
            contents.append((path, replacement))
            files.append(inode)
    return GitCovers(tuple(contents), tuple(sorted(watch.hooks())), tuple(files))


def _replacement(path: str, data: bytes | None, guards: GuardTable) -> bytes | None:
    """None where the settings are inert. Unreadable ones are replaced by nothing: git then uses its defaults."""
    worktrees = worktrees_of(path.rpartition("/")[0], guards)
    try:
        if data is None or active(data, worktrees=worktrees):
            return inert_copy(data or b"", worktrees=worktrees)
    except MalformedGitConfig:
        return b""
    return None
