"""The tools that a client sees, by its toolset and role.

A tool outside the view cannot be called, by whatever name. Lists are built once per version of the registry.
"""

import base64
import binascii
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from toolreeve.core import json
from toolreeve.core.call import Role
from toolreeve.core.suggest import find_similar
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.core.toolset import EVERYTHING, Toolset
from toolreeve.registry import ToolRegistry
from toolreeve.rpc.errors import INVALID_PARAMS
from toolreeve.serve.mcp.protocol import WireError
from toolreeve.serve.mcp.tool_definitions import describe

PAGE = 500
MAX_PAGES = 50
_NO_ALIASES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ToolPage:
    """`encoded` is `tools` as JSON."""

    tools: Sequence[Mapping[str, Any]]
    encoded: bytes
    next: str | None


@dataclass(frozen=True, slots=True)
class _Listing:
    """The listed tools at one version of the registry."""

    version: int
    names: Sequence[str]
    tools: Sequence[Mapping[str, Any]]
    encoded: Sequence[bytes]


class ToolView:
    """With `search`, only tools that the toolset names are listed; the others are found by searching. `aliases` maps
    tools to the names that the client uses."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        toolset: Toolset = EVERYTHING,
        role: Role = Role.OPERATOR,
        search: bool = False,
        aliases: Mapping[str, str] = _NO_ALIASES,
    ) -> None:
        self.registry = registry
        self.toolset = toolset
        self.role = role
        self.search = search
        self._aliases = aliases
        self._listed: _Listing | None = None
        self._pages: dict[tuple[int, int], ToolPage] = {}
        self._found: dict[str, BoundTool] = {}
        self._version = -1

    def admits(self, spec: ToolSpec) -> bool:
        """Whether the client may use a tool, listed or hidden."""
        return self.toolset.includes(spec) and (self.role is not Role.VIEWER or spec.read_only)

    def shows(self, spec: ToolSpec) -> bool:
        return not spec.hidden and self.admits(spec)

    def find(self, name: str) -> BoundTool | None:
        if self._version != self.registry.version:
            self._version = self.registry.version
            self._found = {}
        if (found := self._found.get(name)) is None:
            found = self.registry.get(name)
            if found is None or not self.shows(found.spec):
                return None
            self._found[name] = found
        return found

    def matching(self, query: str, limit: int) -> Sequence[Mapping[str, Any]]:
        """The definitions of the tools that match a query, best first."""
        found = self.registry.search(query, limit=len(self.registry))
        seen = [bound.spec for bound in found if self.shows(bound.spec)]
        return [describe(spec, self._name(spec)) for spec in seen[:limit]]

    def similar(self, name: str) -> list[str]:
        """Names of tools that the client may use and that resemble an unknown one."""
        shown = [self._name(bound.spec) for bound in self.registry.list() if self.shows(bound.spec)]
        found = find_similar(name, shown)
        last = name.rpartition("__")[2]
        return found or find_similar(last, shown) or [each for each in shown if last and last in each][:3]

    def page(self, cursor: Any = None, first: Sequence[Mapping[str, Any]] = ()) -> ToolPage:
        """One page of the list. `first` precedes the tools of the first page."""
        listed = self._current()
        start = 0 if cursor is None else bisect_right(listed.names, read_cursor(cursor))
        key = (start, -1 if cursor is not None else len(first))
        if (made := self._pages.get(key)) is None:
            if len(self._pages) >= MAX_PAGES:  # made-up cursors must not fill the memory
                self._pages.clear()
            made = self._pages[key] = self._new_page(listed, start, () if cursor is not None else first)
        return made

    def _new_page(self, listed: _Listing, start: int, first: Sequence[Mapping[str, Any]]) -> ToolPage:
        end = start + PAGE
        parts = [*map(json.dumps, first), *listed.encoded[start:end]]
        following = write_cursor(listed.names[end - 1]) if end < len(listed.names) else None
        return ToolPage([*first, *listed.tools[start:end]], b"[" + b",".join(parts) + b"]", following)

    def _current(self) -> _Listing:
        if self._listed is None or self._listed.version != self.registry.version:
            specs = [bound.spec for bound in self.registry.list() if self._lists(bound.spec)]
            tools = sorted((describe(spec, self._name(spec)) for spec in specs), key=lambda tool: str(tool["name"]))
            names = [str(tool["name"]) for tool in tools]
            self._listed = _Listing(self.registry.version, names, tools, list(map(json.dumps, tools)))
            self._pages.clear()
        return self._listed

    def _lists(self, spec: ToolSpec) -> bool:
        if not self.shows(spec):
            return False
        return self.toolset.includes_by_name(spec) if self.search else self.toolset.lists(spec)

    def _name(self, spec: ToolSpec) -> str:
        return self._aliases.get(spec.name, spec.name)


def as_fragment(page: ToolPage) -> Any:
    return orjson.Fragment(page.encoded)


def write_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def read_cursor(cursor: Any) -> str:
    """The name after which a page begins; valid even if tools were added or removed."""
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (TypeError, ValueError, binascii.Error):
        raise WireError(INVALID_PARAMS, "Invalid cursor") from None
