"""Commits of trials as undo sees them, implemented by `trial/`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from toolreeve.core.files import Change


class TreeView(Protocol):
    """Files as they would be after some changes were undone. Paths are absolute. Blocks."""

    def fingerprint(self, path: str) -> str | None: ...

    def set(self, path: str, fingerprint: str | None) -> None:
        """From here on, this is what is at the path."""

    def conflicts(self, commit: str, *, undo: bool) -> Sequence[tuple[str, str]]:
        """The paths that keep a commit from being undone, or from being made again, and why."""
        ...

    def toggle(self, commit: str) -> None:
        """From here on, the commit is undone, or made again."""


class KeptCommits(Protocol):
    """The commits of trials, kept for undo. All methods block. `fresh_bytes` is about how much was kept since the last
    pruning."""

    fresh_bytes: int

    def is_standing(self, commit: str, *, undo: bool) -> bool:
        """Whether a commit can be undone, or, if not `undo`, made again."""
        ...

    def changes(self, commit: str, *, undo: bool) -> Sequence[Change]:
        """What was changed by making a commit (`undo`: and would be restored), or by undoing it; a change a path."""
        ...

    def view(self, disk: Callable[[str], str | None]) -> TreeView:
        """The tree as it is. `disk` is the fingerprint of a path that no commit changed."""
        ...

    def toggle(self, commit: str, *, undo: bool) -> None:
        """Undo a commit, or make it again, as a whole. Raises ToolError(WRITE_ERROR); then nothing was changed."""

    def sizes(self) -> Mapping[str, int]: ...

    def prune(self, wanted: Collection[str]) -> None: ...
