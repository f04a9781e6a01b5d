"""Refusals: what a trial may never bring into the real tree.

The same table that guards file tools and commands. What is not known to be harmless is refused.
"""

import os
import stat
from collections.abc import Callable, Collection

from toolreeve.core.git_config import LARGEST
from toolreeve.core.guarded_content import JUDGED, find_new_harm
from toolreeve.core.guarded_paths import (
    REPOSITORY_MAKERS,
    REPOSITORY_NAMES,
    Guarded,
    GuardTable,
    is_repository,
)
from toolreeve.core.trial import TRUSTED_NOTES, USER_NOTES

_EXPECTED_NOTES = frozenset({"opaque", "origin", "impure", "nlink", "uuid", "protattr"})
_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_CARRIED = "user."

ReadContent = Callable[[], bytes]


class Refusals:
    """For the changes of one layer, by absolute path."""

    def __init__(self, guards: GuardTable) -> None:
        self._guards = guards

    def of_path(self, path: str, mode: int, new: ReadContent, former: ReadContent) -> str:
        """Why a path may not be changed, or nothing. `new` is not read for a path that goes (`mode` 0)."""
        if why := self._guards.hidden(path):
            return why
        guard = self._guards.guarded(path)
        if guard is not None and (why := _of_guarded(guard, path, mode, new, former)):
            return why
        if stat.S_ISLNK(mode) and ".git" in path.casefold().split("/"):
            return "git writes to its target"
        return ""

    def of_removal(self, path: str) -> str:
        """Why a path may not go together with the directory around it."""
        if not self._guards.matters(os.path.basename(path).casefold()):
            return ""
        if why := self._guards.hidden(path):
            return why
        guard = self._guards.guarded(path)
        return guard.by if guard is not None and guard.content is None else ""


def _of_guarded(guard: Guarded, path: str, mode: int, new: ReadContent, former: ReadContent) -> str:
    name = os.path.basename(path)
    is_itself = guard.depth == path.count("/")
    if guard.content == "hooks" and (name.endswith(".sample") or (is_itself and stat.S_ISDIR(mode))):
        return ""
    if guard.content == "link" or (guard.content == "program" and stat.S_ISDIR(mode)):
        return guard.by if stat.S_ISLNK(mode) else ""
    if guard.content not in JUDGED or not is_itself or (mode and not stat.S_ISREG(mode)):
        return guard.by
    if not mode:
        return ""
    data = new()
    if len(data) > LARGEST:
        return f"{guard.by}, and it is too large to be inspected"
    return find_new_harm(guard.content, name, data, former(), by=guard.by) or ""


def of_type(mode: int, former: int) -> str:
    """Why an entry of this type and mode may not be committed; `former` is the mode of what was there."""
    if special := _SPECIAL.get(stat.S_IFMT(mode)):
        return f"is {special}"
    powers = stat.S_ISUID if stat.S_ISDIR(mode) else stat.S_ISUID | stat.S_ISGID
    if mode & powers & ~former:
        return "would run with the rights of its owner (setuid or setgid)"
    return ""


def of_attributes(names: Collection[str], prefix: str) -> str:
    """Why an entry with these extended attributes may not be committed. `prefix` is that of overlayfs's own notes."""
    for name in names:
        if name.startswith(prefix):
            if name.removeprefix(prefix) not in _EXPECTED_NOTES:
                return f"carries a note of overlayfs that does not belong there ({name})"
        elif name.startswith((USER_NOTES, TRUSTED_NOTES)):
            return f"carries a forged note of overlayfs ({name})"
        elif name == "security.capability":
            return "would run with capabilities"
    return ""


def carried_attributes(names: Collection[str]) -> list[str]:
    """The extended attributes that belong to the content of a file and are committed with it."""
    return sorted(each for each in names if each.startswith(_CARRIED) and not each.startswith(USER_NOTES))


def access_lists(names: Collection[str]) -> list[str]:
    return sorted(each for each in names if each.startswith("system.posix_acl_"))


def may_concern_repository(name: str) -> bool:
    return name.casefold() in REPOSITORY_NAMES


def of_repository(name: str, before: Collection[str], after: Collection[str]) -> str:
    """Why `name` may not change in a directory that is not called `.git`; both are casefolded names in it."""
    if not is_repository(after):
        return ""
    makes = not is_repository(before)
    if makes or name.casefold() not in REPOSITORY_MAKERS:
        return "git would treat the directory as a repository"
    return ""


def read_at_most(descriptor: int) -> bytes:
    """The content of a file that is judged by it; what is larger is refused."""
    return os.pread(descriptor, LARGEST + 1, 0)
