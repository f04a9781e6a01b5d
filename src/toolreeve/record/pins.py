"""Pins of upstream tool definitions in the database, shared by all processes.

Each method is one transaction. A definition is stored as JSON with the digest that identifies it; only the very
definition that a server offered last can be accepted.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from toolreeve.record.store import Store

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


class PinStore:
    """Pins belong to a server's name and its place, the command or URL that the name stands for.

    `digest` computes the digest of a stored definition.
    """

    def __init__(self, store: Store, digest: Digest) -> None:
        self._store = store
        self._digest = digest

    async def compare(self, server: str, place: str, offered: Sequence[OfferedDefinition]) -> Mapping[str, ChangedPin]:
        """Pin tools seen for the first time; returns those that differ from their pins, and keeps what was offered."""
        return await self._store.transact(
            partial(_compare, server=server, place=place, offered=offered, digest=self._digest)
        )

    async def waiting(self, server: str) -> Sequence[WaitingPin]:
        """The changes that wait for a person, as any process has last seen them."""
        return await self._store.read(partial(_waiting, server=server))

    async def accept(self, server: str, place: str, wanted: Mapping[str, bytes]) -> Sequence[str]:
        """Pin these tools as offered if the offer still has the wanted digest; returns their names."""
        return await self._store.transact(
            partial(_accept, server=server, place=place, wanted=wanted, digest=self._digest)
        )

    async def pinned_digest(self, server: str, place: str, tool: str) -> bytes | None:
        return await self._store.read(partial(_pinned_digest, server=server, place=place, tool=tool))

    def read_pinned_digest(self, server: str, place: str, tool: str) -> bytes | None:
        """As `pinned_digest`. Blocks: call it in a thread."""
        return self._store.read_blocking(partial(_pinned_digest, server=server, place=place, tool=tool))


def _compare(
    database: sqlite3.Connection, *, server: str, place: str, offered: Sequence[OfferedDefinition], digest: Digest
) -> dict[str, ChangedPin]:
    known = {tool: rest for tool, *rest in database.execute(_KNOWN, (server, place))}
    changed: dict[str, ChangedPin] = {}
    for tool, found, definition in offered:
        where = (server, place, tool)
        pinned = known.get(tool)
        if pinned is None:
            database.execute(_PIN, (*where, found, definition))
            continue
        pinned_digest, pinned_definition, earlier_offer = pinned
        if pinned_digest != found:
            is_new = earlier_offer is None or digest(earlier_offer) != found
            changed[tool] = ChangedPin(pinned_definition, is_new)
            if is_new:
                database.execute(_OFFER, (definition, *where))
        elif earlier_offer is not None:
            database.execute(_WITHDRAW, where)
    return changed


def _waiting(database: sqlite3.Connection, *, server: str) -> list[WaitingPin]:
    return [WaitingPin(*row) for row in database.execute(_WAITING, (server,))]


def _accept(
    database: sqlite3.Connection, *, server: str, place: str, wanted: Mapping[str, bytes], digest: Digest
) -> list[str]:
    accepted = []
    for tool, expected in wanted.items():
        where = (server, place, tool)
        row = database.execute(_OFFERED, where).fetchone()
        if row is not None and row[0] is not None and digest(row[0]) == expected:
            database.execute(_ACCEPT, (expected, *where))
            accepted.append(tool)
    return accepted


def _pinned_digest(database: sqlite3.Connection, *, server: str, place: str, tool: str) -> bytes | None:
    row = database.execute(_DIGEST, (server, place, tool)).fetchone()
    return None if row is None else bytes(row[0])


_KNOWN = "SELECT tool, digest, definition, offered FROM pins WHERE server = ? AND place = ?"
_PIN = "INSERT INTO pins (server, place, tool, digest, definition) VALUES (?, ?, ?, ?, ?)"
_OFFER = "UPDATE pins SET offered = ? WHERE server = ? AND place = ? AND tool = ?"
_WITHDRAW = "UPDATE pins SET offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_WAITING = "SELECT place, tool, definition, offered FROM pins WHERE server = ? AND offered IS NOT NULL ORDER BY tool"
_OFFERED = "SELECT offered FROM pins WHERE server = ? AND place = ? AND tool = ?"
_ACCEPT = "UPDATE pins SET digest = ?, definition = offered, offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_DIGEST = "SELECT digest FROM pins WHERE server = ? AND place = ? AND tool = ?"
