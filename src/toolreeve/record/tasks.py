"""Tasks of other agents: state, turn, and a log of events.

A task and its new events are stored together, and only if nobody else changed it meanwhile. Bodies are opaque here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

KEPT = 7 * 24 * 3600.0
"""Seconds that an ended task is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """`owner` is the user whose task it is. `last` is the number of its last event. `question` is what it waits for,
    `process` where it runs; both may be empty. `turn` is what continues it after a restart. `ended` says that it will
    never change again."""

    id: str
    owner: str
    context: str
    state: str
    body: bytes
    turn: Mapping[str, Any] = field(default_factory=dict)
    last: int = 0
    question: str = ""
    process: str = ""
    ended: bool = False
    created: float = 0.0
    changed: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuery:
    """`before` is the position of the last task seen: when it changed, and its id. Empty fields match all."""

    owner: str
    context: str = ""
    state: str = ""
    since: float = 0.0
    before: tuple[float, str] | None = None
    limit: int = 50


class TaskTable(Protocol):
    """Each method is one transaction."""

    async def add(self, row: TaskRow, events: Sequence[bytes]) -> bool:
        """False, and nothing stored, if there is a task with this id."""
        ...

    async def save(self, row: TaskRow, events: Sequence[bytes], *, after: int) -> bool:
        """Store the task with new events; False, and nothing stored, if its last event is not `after` any more."""
        ...

    async def find(self, number: str) -> TaskRow | None: ...

    async def waiting_for(self, question: str) -> Sequence[TaskRow]:
        """The tasks that wait for this question: the same call of several tasks asks once."""
        ...

    async def unended(self) -> Sequence[TaskRow]:
        """The tasks of all users that have not ended, oldest first."""
        ...

    async def page(self, query: TaskQuery) -> tuple[Sequence[TaskRow], int]:
        """Those that changed last first, and how many match in all."""
        ...

    async def events(self, number: str, *, after: int, limit: int = 500) -> Sequence[tuple[int, bytes]]:
        """The events of a task in order, with their numbers."""
        ...

    async def sweep(self, *, before: float) -> int:
        """Forget the tasks that ended before; returns how many."""
        ...
