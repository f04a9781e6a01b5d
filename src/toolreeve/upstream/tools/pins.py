"""Pins tool definitions when first seen; a change waits for a person.

A pin belongs to a server's name and its command or URL: another command or URL under the same name is another server.
A person accepts exactly the definition that was shown: one that changed again meanwhile is not accepted with it.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from toolreeve.core import json
from toolreeve.record.pins import OfferedDefinition, PinTable

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

    def __init__(self, pins: PinTable, *, note: Note | None = None) -> None:
        self._pins = pins
        self._note = note

    async def compare(self, owner: PinOwner, offered: Mapping[str, Definition]) -> Mapping[str, ToolChanged]:
        """Pin new tools; return those that differ from their pins.

        Both by their names here, without the prefix: models and the policy know a tool by that name, and several of the
        server's own spellings lead to it.
        """
        rows = [OfferedDefinition(tool, digest(each), json.dumps(each)) for tool, each in offered.items()]
        differing = await self._pins.compare(owner.server, owner.place, rows, _digest_of)
        return {
            tool: ToolChanged(tool=tool, pinned=json.loads(pin.definition), offered=offered[tool], is_new=pin.is_new)
            for tool, pin in differing.items()
        }

    async def record(self, owner: PinOwner, tool: str, difference: str) -> None:
        """Record what a server changed about a tool."""
        if self._note is not None:
            lines = difference.split("\n")
            entry = {"server": owner.server, "place": owner.place, "changed": tool, "difference": lines}
            await self._note("pins", entry)

    async def changed(self, server: str) -> Mapping[PinOwner, Sequence[ToolChanged]]:
        """The changes that wait for a person, as last seen by any process."""
        found: dict[PinOwner, list[ToolChanged]] = {}
        for pin in await self._pins.waiting(server):
            change = ToolChanged(tool=pin.tool, pinned=json.loads(pin.definition), offered=json.loads(pin.offered))
            found.setdefault(PinOwner(server=server, place=pin.place), []).append(change)
        return found

    async def accept(self, owner: PinOwner, changes: Sequence[ToolChanged]) -> Sequence[str]:
        """Pin these as they were offered, except tools that have changed again since; returns the accepted tools."""
        wanted = {each.tool: digest(each.offered) for each in changes}
        accepted = await self._pins.accept(owner.server, owner.place, wanted, _digest_of)
        if accepted and self._note is not None:
            digests = {tool: wanted[tool].hex() for tool in accepted}
            await self._note("pins", {"server": owner.server, "place": owner.place, "accepted": digests})
        return accepted

    def accepted_now(self, owner: PinOwner, change: ToolChanged) -> bool:
        """Whether a person has accepted this change by now, perhaps in another process. Blocks: for a thread."""
        return self._pins.read_pinned_digest(owner.server, owner.place, change.tool) == digest(change.offered)

    async def accepted(self, owner: PinOwner, change: ToolChanged) -> bool:
        pinned = await self._pins.pinned_digest(owner.server, owner.place, change.tool)
        return pinned == digest(change.offered)


def _digest_of(definition: bytes) -> bytes:
    return digest(json.loads(definition))
