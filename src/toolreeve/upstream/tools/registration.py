"""Registers those listed tools that are valid and that the user wants.

An invalid tool stops no other: it is left out, and `problems` says why. Only differences are registered.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.tool import BoundTool
from toolreeve.core.visible import one_line
from toolreeve.registry import ToolRegistry
from toolreeve.upstream.session.request_headers import header_params_problem
from toolreeve.upstream.status import MAX_PROBLEMS
from toolreeve.upstream.supervisor import Emit
from toolreeve.upstream.tools.definition import InvalidDefinition, check, input_of, output_of
from toolreeve.upstream.tools.diff import changed_places, difference
from toolreeve.upstream.tools.names import RELAYED, SEPARATOR, NameRefused, tool_name
from toolreeve.upstream.tools.pins import Definition, PinOwner, Pins, ToolChanged
from toolreeve.upstream.tools.tool import new_relay, new_tool, refuse_changed
from toolreeve.upstream.upstream import Upstream

logger = logging.getLogger(__name__)

SLICE_SECONDS = 0.005
"""Work before other tasks get their turn: a server may list thousands of tools with large schemas."""


class CooperativeLoop:
    """Yields to other tasks during long work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()

    async def yield_if_due(self) -> None:
        if self._loop.time() - self._since > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._since = self._loop.time()


class ToolRegistration:
    """`forget` is called with the name of each tool that was replaced or removed; `owner` gives the other server that a
    tool's name refers to."""

    def __init__(
        self,
        upstream: Upstream,
        registry: ToolRegistry,
        pins: Pins,
        *,
        forget: Callable[[str], None],
        owner: Callable[[str], str | None],
        emit: Emit,
    ) -> None:
        self._upstream = upstream
        self._registry = registry
        self._pins = pins
        self._forget = forget
        self._owner = owner
        self._emit = emit
        self._prefix = upstream.spec.name if upstream.spec.prefix is None else upstream.spec.prefix
        self._pin_owner = PinOwner(server=upstream.name, place=upstream.spec.place)
        self._tools: dict[str, BoundTool] = {}
        self._offered: Sequence[Any] = ()
        self._lock = asyncio.Lock()
        self.problems: tuple[str, ...] = ()
        self.changed: Mapping[str, ToolChanged] = {}

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._tools)

    def add_relays(self) -> None:
        for method in RELAYED:
            self._registry.register(new_relay(method, self._upstream))

    async def update(self, definitions: Sequence[Any]) -> Mapping[str, Any]:
        """Make the registry hold exactly these tools of this server. Returns their input schemas, by the server's
        names."""
        async with self._lock:
            return await self._update(definitions)

    async def _update(self, definitions: Sequence[Any]) -> Mapping[str, Any]:
        problems: list[str] = []
        usable = await self._check_all(definitions, problems)
        changed = await self._pins.compare(self._pin_owner, {self._bare(name): each for name, each in usable.items()})
        await self._announce(changed)
        self._offered = definitions
        self.changed = changed
        self._remove(set(self._tools) - set(usable))
        work = CooperativeLoop()
        for name, definition in usable.items():
            self._register(name, definition, problems)
            await work.yield_if_due()
        self.problems = tuple(map(one_line, problems[:MAX_PROBLEMS]))
        return {definition["name"]: definition["inputSchema"] for definition in usable.values()}

    async def _check_all(self, definitions: Sequence[Any], problems: list[str]) -> dict[str, Definition]:
        """The valid ones, by their names here. Of two that would get the same name, the first."""
        found: dict[str, Definition] = {}
        work = CooperativeLoop()
        for number, candidate in enumerate(definitions, 1):
            try:
                checked = self._check(candidate)
                if checked is not None:
                    name, definition = checked
                    if name in found:
                        raise InvalidDefinition(f"{found[name]['name']!r} is already called {name!r}")
                    found[name] = definition
            except (InvalidDefinition, NameRefused) as problem:
                problems.append(f"the tool {_label(candidate, number)} is left out: {problem}")
            await work.yield_if_due()
        return found

    def _check(self, candidate: Any) -> tuple[str, Definition] | None:
        """With its name here; None if the user does not want it. Raises InvalidDefinition, NameRefused."""
        spec = self._upstream.spec
        definition = check(candidate)
        name = tool_name(self._prefix, definition["name"])
        if not spec.offers(definition["name"]):
            return None
        if (other := self._owner(name)) is not None:
            raise InvalidDefinition(f"the name {name!r} would refer to the server {other!r}")
        held = self._tools.get(name)
        if held is None or held.spec.declared != definition:
            schema = input_of(definition)
            output_of(definition)
            if spec.kind == "http" and (problem := header_params_problem(schema.document)):
                raise InvalidDefinition(problem)
        return name, definition

    def _bare(self, name: str) -> str:
        """A tool's name without the prefix of this server."""
        return name.removeprefix(f"{self._prefix}{SEPARATOR}") if self._prefix else name

    def _register(self, name: str, definition: Definition, problems: list[str]) -> None:
        change = self.changed.get(self._bare(name))
        shown = definition if change is None else change.pinned
        held = self._tools.get(name)
        if held is not None and held.spec.declared == shown and (held.screen is None) == (change is None):
            return
        self._remove({name})
        try:
            screen = None
            if change is not None:
                screen = refuse_changed(change, self._upstream.name, self._is_accepted(change))
            self._tools[name] = self._registry.register(new_tool(name, shown, self._upstream, screen))
        except (InvalidDefinition, ToolreeveError) as problem:
            problems.append(f"the tool {definition['name']!a} is left out: {problem}")

    def _remove(self, names: set[str]) -> None:
        for name in names & self._tools.keys():
            del self._tools[name]
            self._registry.unregister(name)
            self._forget(name)

    def _is_accepted(self, change: ToolChanged) -> Callable[[], bool]:
        return lambda: self._pins.accepted_now(self._pin_owner, change)

    async def _announce(self, changed: Mapping[str, ToolChanged]) -> None:
        """The record gets the difference; the log says where to read it."""
        server = self._upstream.name
        for tool in sorted(changed.keys() - self.changed.keys()):
            self._emit("tool_changed", {"server": server, "tool": tool})
            where = ", ".join(changed_places(changed[tool]))
            logger.warning(
                "the server %r changed its tool %r (%s): see `toolreeve servers show %s`", server, tool, where, server
            )
        for change in [each for each in changed.values() if each.is_new][:MAX_PROBLEMS]:
            await self._pins.record(self._pin_owner, change.tool, difference(change))

    async def apply_accepted(self) -> None:
        """Apply the changes that a person has accepted since."""
        accepted = [await self._pins.accepted(self._pin_owner, change) for change in self.changed.values()]
        if any(accepted):
            await self.update(self._offered)


def _label(candidate: Any, number: int) -> str:
    name = candidate.get("name") if isinstance(candidate, dict) else None
    return f"{name[:100]!a}" if isinstance(name, str) and name else f"number {number}"
