"""Runs of agents: question, conversation and outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRunRow:
    """`stop` is empty while the run goes on, or if the process died in it."""

    id: str
    user: str
    workspace: str
    session: str
    model: str
    question: str
    began: float
    ended: float | None = None
    stop: str = ""
    steps: int = 0
    cost: float = 0.0


class AgentRunTable(Protocol):
    """Each method is one transaction. Messages are JSON, numbered from 0."""

    async def begin(self, row: AgentRunRow) -> None: ...

    async def add_messages(self, run: str, first: int, messages: Sequence[bytes]) -> None: ...

    async def end(self, run: str, *, ended: float, stop: str, steps: int, cost: float) -> None: ...

    async def recent(self, user: str, limit: int) -> Sequence[AgentRunRow]:
        """The user's runs, newest first."""
        ...

    async def find(self, user: str, prefix: str) -> Sequence[AgentRunRow]:
        """The user's runs whose id begins so."""
        ...

    async def messages(self, run: str) -> Sequence[bytes]: ...
