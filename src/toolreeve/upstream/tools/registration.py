"""Which tools of a server are in the registry? Those that it lists, that can be used, and that the user wants.

One that cannot be used stops no other: it is left out, and `problems` says why. Only differences are registered.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.tool import BoundTool
from toolreeve.core.visible import one_line
from toolreeve.registry import ToolRegistry
from toolreeve.upstream.session.request_headers import wrong_mark
from toolreeve.upstream.supervisor import Tell
from toolreeve.upstream.tools.definition import Unusable, check, input_of, output_of
from toolreeve.upstream.tools.diff import difference, parts
from toolreeve.upstream.tools.names import RELAYED, SEPARATOR, NameRefused, tool_name
from toolreeve.upstream.tools.pins import Definition, Home, Pins, ToolChanged
from toolreeve.upstream.tools.tool import new_relay, new_tool, refuse_changed
from toolreeve.upstream.upstream import Upstream

logger = logging.getLogger(__name__)

MOST_PROBLEMS = 100
BREATH = 0.005
"""Seconds of work before others get their turn: a server may list thousands of tools with large schemas."""


class Pace:
    """Long work that lets others work, too."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()

    async def breathe(self) -> None:
        if self._loop.time() - self._since > BREATH:
            await asyncio.sleep(0)
            self._since = self._loop.time()


class ToolRegistration:
    """`forget` is called with the name of each tool that is another now; `owner` tells which other server a name of a
    tool speaks of."""

    def __init__(
        self,
        upstream: Upstream,
        registry: ToolRegistry,
        pins: Pins,
        *,
        forget: Callable[[str], None],
        owner: Callable[[str], str | None],
        tell: Tell,
    ) -> None:
        self._upstream, self._registry, self._pins = upstream, registry, pins
        self._forget, self._owner, self._tell = forget, owner, tell
        self._prefix = upstream.spec.name if upstream.spec.prefix is None else upstream.spec.prefix
        self._home = Home(server=upstream.name, place=upstream.spec.place)
        self._tools: dict[str, BoundTool] = {}
        self._offered: Sequence[Any] = ()
        self._turn = asyncio.Lock()
        self.problems: tuple[str, ...] = ()
        self.changed: Mapping[str, ToolChanged] = {}

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._tools)

    def put_relays(self) -> None:
        for method in RELAYED:
            self._registry.register(new_relay(method, self._upstream))

    async def put(self, definitions: Sequence[Any]) -> Mapping[str, Any]:
        """Let the registry hold these and no others of this server. The input schemas, by the server's names."""
        async with self._turn:
            return await self._put(definitions)

    async def _put(self, definitions: Sequence[Any]) -> Mapping[str, Any]:
        problems: list[str] = []
        usable = await self._usable(definitions, problems)
        changed = await self._pins.compare(self._home, {self._bare(name): each for name, each in usable.items()})
        await self._announce(changed)
        self._offered, self.changed = definitions, changed
        self._remove(set(self._tools) - set(usable))
        pace = Pace()
        for name, definition in usable.items():
            self._place(name, definition, problems)
            await pace.breathe()
        self.problems = tuple(map(one_line, problems[:MOST_PROBLEMS]))
        return {definition["name"]: definition["inputSchema"] for definition in usable.values()}

    async def _usable(self, definitions: Sequence[Any], problems: list[str]) -> dict[str, Definition]:
        """Those that can be offered, by their names here. Of two that would get one name, the first."""
        found: dict[str, Definition] = {}
        pace = Pace()
        for number, candidate in enumerate(definitions, 1):
            try:
                if (read := self._read(candidate)) is not None and found.setdefault(*read) is not read[1]:
                    raise Unusable(f"{found[read[0]]['name']!r} is already called {read[0]!r}")
            except (Unusable, NameRefused) as problem:
                problems.append(f"the tool {_called(candidate, number)} is left out: {problem}")
            await pace.breathe()
        return found

    def _read(self, candidate: Any) -> tuple[str, Definition] | None:
        """Its name here, if the user wants it. Raises Unusable, NameRefused."""
        spec = self._upstream.spec
        definition = check(candidate)
        name = tool_name(self._prefix, definition["name"])
        if not spec.offers(definition["name"]):
            return None
        if (other := self._owner(name)) is not None:
            raise Unusable(f"{name!r} would be a name of the server {other!r}")
        held = self._tools.get(name)
        if held is None or held.spec.declared != definition:
            schema = input_of(definition)
            output_of(definition)
            if spec.kind == "http" and (problem := wrong_mark(schema.document)):
                raise Unusable(problem)
        return name, definition

    def _bare(self, name: str) -> str:
        """A tool's name without what stands before those of this server."""
        return name.removeprefix(f"{self._prefix}{SEPARATOR}") if self._prefix else name

    def _place(self, name: str, definition: Definition, problems: list[str]) -> None:
        change = self.changed.get(self._bare(name))
        shown = definition if change is None else change.pinned
        held = self._tools.get(name)
        if held is not None and held.spec.declared == shown and (held.screen is None) == (change is None):
            return
        self._remove({name})
        try:
            screen = None if change is None else refuse_changed(change, self._upstream.name, self._asks(change))
            self._tools[name] = self._registry.register(new_tool(name, shown, self._upstream, screen))
        except (Unusable, ToolreeveError) as problem:
            problems.append(f"the tool {definition['name']!a} is left out: {problem}")

    def _remove(self, names: set[str]) -> None:
        for name in names & self._tools.keys():
            del self._tools[name]
            self._registry.unregister(name)
            self._forget(name)

    def _asks(self, change: ToolChanged) -> Callable[[], bool]:
        return lambda: self._pins.accepted_now(self._home, change)

    async def _announce(self, changed: Mapping[str, ToolChanged]) -> None:
        """The record has the difference, for people to read; those who run the program are told where to look."""
        server = self._upstream.name
        for tool in sorted(changed.keys() - self.changed.keys()):
            self._tell("tool_changed", {"server": server, "tool": tool})
            where = ", ".join(parts(changed[tool]))
            logger.warning(
                "the server %r changed its tool %r (%s): see `toolreeve servers show %s`", server, tool, where, server
            )
        for change in [each for each in changed.values() if each.news][:MOST_PROBLEMS]:
            await self._pins.record(self._home, change.tool, difference(change))

    async def look(self) -> None:
        """Take up what a person has accepted since."""
        changes = self.changed.values()
        if any([await self._pins.accepted(self._home, change) for change in changes]):
            await self.put(self._offered)


def _called(candidate: Any, number: int) -> str:
    name = candidate.get("name") if isinstance(candidate, dict) else None
    return f"{name[:100]!a}" if isinstance(name, str) and name else f"number {number}"
