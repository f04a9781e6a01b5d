"""Is this still the tool that was first seen? Its definition is pinned then, and a change waits for a person.

A pin belongs to a server's name and to where it leads: another command or URL under the same name is another server.
What a person accepts is the very definition that was shown: one that changed again meanwhile is not accepted with it.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from toolreeve.core import json
from toolreeve.record.pins import OfferedDefinition, PinStore
from toolreeve.record.store import Store

FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What a model or a person goes by. The rest of a definition may change unasked."""

Definition = Mapping[str, Any]
Note = Callable[[str, Mapping[str, Any]], Awaitable[None]]


def digest(definition: Definition) -> bytes:
    """The same for two definitions that say the same, however they are written."""
    said = {field: definition[field] for field in FIELDS if definition.get(field) is not None}
    return hashlib.sha256(spelled(said)).digest()


def spelled(value: Any) -> bytes:
    """One spelling for all that say the same; `true` and `1` do not, though Python takes them for equal."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChanged:
    """A tool that is not what it was: `pinned` is what a person knows of it, `offered` what the server says now.
    `news` is whether nobody has seen it offered so before."""

    tool: str
    pinned: Definition
    offered: Definition
    news: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Whose pins: a server's name, and where it leads."""

    server: str
    place: str


class Pins:
    """The pins of all servers, shared by all processes that use the store. `note` puts what is accepted on record."""

    def __init__(self, store: Store, *, note: Note | None = None) -> None:
        self._pins = PinStore(store, lambda definition: digest(json.loads(definition)))
        self._note = note

    async def compare(self, home: Home, offered: Mapping[str, Definition]) -> Mapping[str, ToolChanged]:
        """Pin what is seen for the first time; the tools that differ from their pins.

        Both by their names here, without the prefix: by that name a tool is known to models and to the policy, and a
        server has more than one spelling that leads to it.
        """
        rows = [OfferedDefinition(tool, digest(each), json.dumps(each)) for tool, each in offered.items()]
        differing = await self._pins.compare(home.server, home.place, rows)
        return {
            tool: ToolChanged(tool=tool, pinned=json.loads(pin.definition), offered=offered[tool], news=pin.is_new)
            for tool, pin in differing.items()
        }

    async def record(self, home: Home, tool: str, difference: str) -> None:
        """Put on record what a server changed about a tool."""
        if self._note is not None:
            told = {"server": home.server, "place": home.place, "changed": tool, "difference": difference.split("\n")}
            await self._note("pins", told)

    async def changed(self, server: str) -> Mapping[Home, Sequence[ToolChanged]]:
        """What waits for a person, as any process has last seen it."""
        found: dict[Home, list[ToolChanged]] = {}
        for pin in await self._pins.waiting(server):
            change = ToolChanged(tool=pin.tool, pinned=json.loads(pin.definition), offered=json.loads(pin.offered))
            found.setdefault(Home(server=server, place=pin.place), []).append(change)
        return found

    async def accept(self, home: Home, changes: Sequence[ToolChanged]) -> Sequence[str]:
        """Pin these as they were offered; the tools that have been offered differently since are left as they are."""
        wanted = {each.tool: digest(each.offered) for each in changes}
        accepted = await self._pins.accept(home.server, home.place, wanted)
        if accepted and self._note is not None:
            told = {tool: wanted[tool].hex() for tool in accepted}
            await self._note("pins", {"server": home.server, "place": home.place, "accepted": told})
        return accepted

    def accepted_now(self, home: Home, change: ToolChanged) -> bool:
        """Whether a person has accepted this change by now, perhaps in another process. Blocks: for a thread."""
        return self._pins.read_pinned_digest(home.server, home.place, change.tool) == digest(change.offered)

    async def accepted(self, home: Home, change: ToolChanged) -> bool:
        pinned = await self._pins.pinned_digest(home.server, home.place, change.tool)
        return pinned == digest(change.offered)
