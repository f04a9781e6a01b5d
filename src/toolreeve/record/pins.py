"""Pins of upstream tool definitions, shared by all processes.

A definition is stored as JSON with the digest that identifies it; only the very
definition that a server offered last can be accepted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

Digest = Callable[[bytes], bytes]


class OfferedDefinition(NamedTuple):
    tool: str
    digest: bytes
    definition: bytes


class ChangedPin(NamedTuple):
    """`definition` is the pinned one; `is_new` means that no process has seen this offer before."""

    definition: bytes
    is_new: bool


class WaitingPin(NamedTuple):
    place: str
    tool: str
    definition: bytes
    offered: bytes


class PinTable(Protocol):
    """Pins belong to a server's name and its place, the command or URL that the name stands for.

    Each method is one transaction. `digest` computes the digest of a stored definition.
    """

    async def compare(
        self, server: str, place: str, offered: Sequence[OfferedDefinition], digest: Digest
    ) -> Mapping[str, ChangedPin]:
        """Pin tools seen for the first time; returns those that differ from their pins, and keeps what was offered."""
        ...

    async def waiting(self, server: str) -> Sequence[WaitingPin]:
        """The changes that wait for a person, as any process has last seen them."""
        ...

    async def accept(self, server: str, place: str, wanted: Mapping[str, bytes], digest: Digest) -> Sequence[str]:
        """Pin these tools as offered if the offer still has the wanted digest; returns their names."""
        ...

    async def pinned_digest(self, server: str, place: str, tool: str) -> bytes | None: ...

    def read_pinned_digest(self, server: str, place: str, tool: str) -> bytes | None:
        """As `pinned_digest`. Blocks: call it in a thread."""
