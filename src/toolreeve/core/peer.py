"""Peer: the caller of a running call, in whatever protocol it speaks.

A door that can carry more than a result attaches a `Peer` to the call: progress goes through it, and approvals are
asked through it. Nothing here knows a protocol; a door translates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, Protocol, runtime_checkable


class Deferral(Enum):
    DEFERRED = "deferred"


DEFERRED: Final = Deferral.DEFERRED
"""Returned by `Peer.ask` if the answer arrives with a later call."""
Deferred = Literal[Deferral.DEFERRED]


class PeerUnavailable(Exception):
    """The caller cannot be asked."""


class NoAnswer(Exception):
    """The caller's response neither grants nor denies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorApproval:
    """The call that `binding` names was approved before it paused for input."""

    binding: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorAnswer:
    """A person's answer to a deferred question about the call that `binding` names.

    `read` gives the answer to the same question asked again; it raises NoAnswer. `channel` names the channel for an
    answer that does not say who gave it. `question` and `asked` say which question it was, and when it was asked.
    """

    binding: str
    question: str
    asked: float
    read: Callable[[Any], Any]
    channel: str = ""


class Peer(Protocol):
    """One call's channel back to its caller.

    `decision` is what the caller brought with a repeated call, verified by its door.
    """

    @property
    def session(self) -> str:
        """The same for all calls of one client connection."""
        ...

    @property
    def credential(self) -> str:
        """The id of the client's token; empty if none is required."""
        ...

    @property
    def wants_progress(self) -> bool: ...

    @property
    def can_ask(self) -> bool:
        """Whether a person at the caller can be shown a question."""
        ...

    @property
    def defers(self) -> bool:
        """Whether questions are answered with a later call: `ask` then returns DEFERRED at once."""
        ...

    @property
    def decision(self) -> PriorApproval | PriorAnswer | None: ...

    async def ask(self, request: Any) -> Any:
        """The `Answer` to an approval `Request`, or DEFERRED. Raises PeerUnavailable, NoAnswer."""
        ...

    async def progress(self, text: str) -> None: ...


@runtime_checkable
class NestedAsker(Protocol):
    """A caller to whom questions of the calls inside its call can be shown, while that call waits."""

    async def show_nested(self, request: Any) -> None: ...
