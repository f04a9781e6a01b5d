"""File changes noted for undo: what is kept, and where.

A change is durable when `note` returns, which is before the file is changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolreeve.core.files import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedChange:
    id: int
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOwner:
    """The caller that made a change. `session` is None for any session of the user."""

    user: str
    session: str | None = None


class ChangeTable(Protocol):
    """Each method is one transaction."""

    async def note(self, change: Change, *, call_id: str, session: str, owner: ChangeOwner, at: float) -> int:
        """Returns the number of the change. `session` is empty if the change is not to be undone with its session."""
        ...

    async def standing(
        self, *, call_id: str | None, session: str | None, owner: ChangeOwner | None = None
    ) -> Sequence[NotedChange]:
        """The changes of a call or a session, if they are the owner's, that have not been undone; newest first."""
        ...

    def read_standing(
        self, *, call_id: str | None, session: str | None, owner: ChangeOwner | None = None
    ) -> Sequence[NotedChange]:
        """As `standing`, and also before the first start: then nothing has been changed yet. Blocks: for a thread."""
        ...

    async def mark_undone(self, number: int) -> None: ...

    async def last_calls(self, count: int) -> Sequence[str]:
        """The calls with changes that have not been undone, newest first; calls that undid something are left out."""
        ...

    async def states(self, call_ids: Sequence[str]) -> Mapping[str, bool]:
        """The calls among these that have changes, and whether all of them were undone."""
        ...

    async def recent(self, count: int) -> Sequence[Change]:
        """The last changes, undone or not, newest first."""
        ...

    async def forget(self, *, before: float, sizes: Mapping[str, int], most_bytes: int) -> set[str]:
        """Drop changes noted before a time, and the oldest beyond a total size of contents; returns the digests of the
        contents still needed."""
        ...
