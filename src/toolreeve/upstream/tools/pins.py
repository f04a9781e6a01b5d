"""Is this still the tool that was first seen? Its definition is pinned then, and a change waits for a person.

A pin belongs to a server's name and to where it leads: another command or URL under the same name is another server.
What a person accepts is the very definition that was shown: one that changed again meanwhile is not accepted with it.
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
        self._store, self._note = store, note

    async def compare(self, home: Home, offered: Mapping[str, Definition]) -> Mapping[str, ToolChanged]:
        """Pin what is seen for the first time; the tools that differ from their pins.

        Both by their names here, without the prefix: by that name a tool is known to models and to the policy, and a
        server has more than one spelling that leads to it.
        """
        rows = [(tool, digest(each), json.dumps(each)) for tool, each in offered.items()]
        differing = await self._store.transact(partial(_compare, home=home, rows=rows))
        return {
            tool: ToolChanged(tool=tool, pinned=pinned, offered=offered[tool], news=news)
            for tool, (pinned, news) in differing.items()
        }

    async def record(self, home: Home, tool: str, difference: str) -> None:
        """Put on record what a server changed about a tool."""
        if self._note is not None:
            told = {"server": home.server, "place": home.place, "changed": tool, "difference": difference.split("\n")}
            await self._note("pins", told)

    async def changed(self, server: str) -> Mapping[Home, Sequence[ToolChanged]]:
        """What waits for a person, as any process has last seen it."""
        return await self._store.read(partial(_waiting, server=server))

    async def accept(self, home: Home, changes: Sequence[ToolChanged]) -> Sequence[str]:
        """Pin these as they were offered; the tools that have been offered differently since are left as they are."""
        accepted = await self._store.transact(partial(_accept, home=home, changes=changes))
        if accepted and self._note is not None:
            told = {each.tool: digest(each.offered).hex() for each in changes if each.tool in accepted}
            await self._note("pins", {"server": home.server, "place": home.place, "accepted": told})
        return accepted

    def accepted_now(self, home: Home, change: ToolChanged) -> bool:
        """Whether a person has accepted this change by now, perhaps in another process. A quick look."""
        return self._store.read_now(partial(_pinned, home=home, tool=change.tool)) == digest(change.offered)

    async def accepted(self, home: Home, change: ToolChanged) -> bool:
        pinned = await self._store.read(partial(_pinned, home=home, tool=change.tool))
        return pinned == digest(change.offered)


_Rows = Sequence[tuple[str, bytes, bytes]]


def _compare(database: sqlite3.Connection, *, home: Home, rows: _Rows) -> dict[str, tuple[Definition, bool]]:
    known = {tool: rest for tool, *rest in database.execute(_KNOWN, (home.server, home.place))}
    differing: dict[str, tuple[Definition, bool]] = {}
    for tool, found, definition in rows:
        pinned = known.get(tool)
        if pinned is None:
            database.execute(_PIN, (home.server, home.place, tool, found, definition))
        elif pinned[0] != found:
            news = pinned[2] is None or digest(json.loads(pinned[2])) != found
            differing[tool] = (json.loads(pinned[1]), news)
            if news:
                database.execute(_OFFER, (definition, home.server, home.place, tool))
        elif pinned[2] is not None:
            database.execute(_SAME, (home.server, home.place, tool))
    return differing


def _waiting(database: sqlite3.Connection, *, server: str) -> dict[Home, list[ToolChanged]]:
    found: dict[Home, list[ToolChanged]] = {}
    for place, tool, pinned, offered in database.execute(_WAITING, (server,)):
        change = ToolChanged(tool=tool, pinned=json.loads(pinned), offered=json.loads(offered))
        found.setdefault(Home(server=server, place=place), []).append(change)
    return found


def _accept(database: sqlite3.Connection, *, home: Home, changes: Sequence[ToolChanged]) -> list[str]:
    accepted = []
    for change in changes:
        row = database.execute(_OFFERED, (home.server, home.place, change.tool)).fetchone()
        if row is not None and row[0] is not None and digest(json.loads(row[0])) == digest(change.offered):
            where = (home.server, home.place, change.tool)
            database.execute(_ACCEPT, (digest(change.offered), *where))
            accepted.append(change.tool)
    return accepted


def _pinned(database: sqlite3.Connection, *, home: Home, tool: str) -> bytes | None:
    row = database.execute(_DIGEST, (home.server, home.place, tool)).fetchone()
    return None if row is None else bytes(row[0])


_KNOWN = "SELECT tool, digest, definition, offered FROM pins WHERE server = ? AND place = ?"
_PIN = "INSERT INTO pins (server, place, tool, digest, definition) VALUES (?, ?, ?, ?, ?)"
_OFFER = "UPDATE pins SET offered = ? WHERE server = ? AND place = ? AND tool = ?"
_SAME = "UPDATE pins SET offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_WAITING = "SELECT place, tool, definition, offered FROM pins WHERE server = ? AND offered IS NOT NULL ORDER BY tool"
_OFFERED = "SELECT offered FROM pins WHERE server = ? AND place = ? AND tool = ?"
_ACCEPT = "UPDATE pins SET digest = ?, definition = offered, offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_DIGEST = "SELECT digest FROM pins WHERE server = ? AND place = ? AND tool = ?"
