"""Pins tool definitions when first seen; a change waits for a person.

A pin belongs to a server's name and its command or URL: another command or URL under the same name is another server.
A person accepts exactly the definition that was shown: one that changed again meanwhile is not accepted with it.
"""

import hashlib
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from toolreeve.core import json
from toolreeve.record.store import Store

FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What a model or a person relies on. The rest of a definition may change unasked."""

Definition = Mapping[str, Any]
Note = Callable[[str, Mapping[str, Any]], Awaitable[None]]


def digest(definition: Definition) -> bytes:
    """The same for two definitions that are equal, however they are written."""
    pinned = {field: definition[field] for field in FIELDS if definition.get(field) is not None}
    return hashlib.sha256(canonical_json(pinned)).digest()


def canonical_json(value: Any) -> bytes:
    """The same bytes for equal values; `true` and `1` differ, though Python takes them for equal."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChanged:
    """A tool that differs from its pin: `offered` is its definition now. `is_new` is whether this very definition was
    never offered before."""

    tool: str
    pinned: Definition
    offered: Definition
    is_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PinOwner:
    """Whose pins: a server's name, and its command line or URL."""

    server: str
    place: str


class Pins:
    """The pins of all servers, shared by all processes that use the store. `note` writes to the record."""

    def __init__(self, store: Store, *, note: Note | None = None) -> None:
        self._store = store
        self._note = note

    async def compare(self, owner: PinOwner, offered: Mapping[str, Definition]) -> Mapping[str, ToolChanged]:
        """Pin new tools; return those that differ from their pins.

        Both by their names here, without the prefix: models and the policy know a tool by that name, and several of the
        server's own spellings lead to it.
        """
        rows = [(tool, digest(each), json.dumps(each)) for tool, each in offered.items()]
        differing = await self._store.transact(partial(_compare, owner=owner, rows=rows))
        return {
            tool: ToolChanged(tool=tool, pinned=pinned, offered=offered[tool], is_new=is_new)
            for tool, (pinned, is_new) in differing.items()
        }

    async def record(self, owner: PinOwner, tool: str, difference: str) -> None:
        """Record what a server changed about a tool."""
        if self._note is not None:
            lines = difference.split("\n")
            entry = {"server": owner.server, "place": owner.place, "changed": tool, "difference": lines}
            await self._note("pins", entry)

    async def changed(self, server: str) -> Mapping[PinOwner, Sequence[ToolChanged]]:
        """The changes that wait for a person, as last seen by any process."""
        return await self._store.read(partial(_waiting, server=server))

    async def accept(self, owner: PinOwner, changes: Sequence[ToolChanged]) -> Sequence[str]:
        """Pin these as they were offered, except tools that have changed again since; returns the accepted tools."""
        accepted = await self._store.transact(partial(_accept, owner=owner, changes=changes))
        if accepted and self._note is not None:
            digests = {each.tool: digest(each.offered).hex() for each in changes if each.tool in accepted}
            await self._note("pins", {"server": owner.server, "place": owner.place, "accepted": digests})
        return accepted

    def accepted_now(self, owner: PinOwner, change: ToolChanged) -> bool:
        """Whether a person has accepted this change by now, perhaps in another process. Does not wait for the store."""
        return self._store.read_now(partial(_pinned, owner=owner, tool=change.tool)) == digest(change.offered)

    async def accepted(self, owner: PinOwner, change: ToolChanged) -> bool:
        pinned = await self._store.read(partial(_pinned, owner=owner, tool=change.tool))
        return pinned == digest(change.offered)


_Rows = Sequence[tuple[str, bytes, bytes]]


def _compare(database: sqlite3.Connection, *, owner: PinOwner, rows: _Rows) -> dict[str, tuple[Definition, bool]]:
    known = {tool: rest for tool, *rest in database.execute(_KNOWN, (owner.server, owner.place))}
    differing: dict[str, tuple[Definition, bool]] = {}
    for tool, found, definition in rows:
        pinned = known.get(tool)
        if pinned is None:
            database.execute(_PIN, (owner.server, owner.place, tool, found, definition))
        elif pinned[0] != found:
            is_new = pinned[2] is None or digest(json.loads(pinned[2])) != found
            differing[tool] = (json.loads(pinned[1]), is_new)
            if is_new:
                database.execute(_OFFER, (definition, owner.server, owner.place, tool))
        elif pinned[2] is not None:
            database.execute(_SAME, (owner.server, owner.place, tool))
    return differing


def _waiting(database: sqlite3.Connection, *, server: str) -> dict[PinOwner, list[ToolChanged]]:
    found: dict[PinOwner, list[ToolChanged]] = {}
    for place, tool, pinned, offered in database.execute(_WAITING, (server,)):
        change = ToolChanged(tool=tool, pinned=json.loads(pinned), offered=json.loads(offered))
        found.setdefault(PinOwner(server=server, place=place), []).append(change)
    return found


def _accept(database: sqlite3.Connection, *, owner: PinOwner, changes: Sequence[ToolChanged]) -> list[str]:
    accepted = []
    for change in changes:
        row = database.execute(_OFFERED, (owner.server, owner.place, change.tool)).fetchone()
        if row is not None and row[0] is not None and digest(json.loads(row[0])) == digest(change.offered):
            where = (owner.server, owner.place, change.tool)
            database.execute(_ACCEPT, (digest(change.offered), *where))
            accepted.append(change.tool)
    return accepted


def _pinned(database: sqlite3.Connection, *, owner: PinOwner, tool: str) -> bytes | None:
    row = database.execute(_DIGEST, (owner.server, owner.place, tool)).fetchone()
    return None if row is None else bytes(row[0])


_KNOWN = "SELECT tool, digest, definition, offered FROM pins WHERE server = ? AND place = ?"
_PIN = "INSERT INTO pins (server, place, tool, digest, definition) VALUES (?, ?, ?, ?, ?)"
_OFFER = "UPDATE pins SET offered = ? WHERE server = ? AND place = ? AND tool = ?"
_SAME = "UPDATE pins SET offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_WAITING = "SELECT place, tool, definition, offered FROM pins WHERE server = ? AND offered IS NOT NULL ORDER BY tool"
_OFFERED = "SELECT offered FROM pins WHERE server = ? AND place = ? AND tool = ?"
_ACCEPT = "UPDATE pins SET digest = ?, definition = offered, offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_DIGEST = "SELECT digest FROM pins WHERE server = ? AND place = ? AND tool = ?"
