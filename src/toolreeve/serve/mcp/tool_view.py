"""Which tools does a client see? What its toolset chooses and its role may use; nothing else exists for it.

A tool that is not seen cannot be called, by whatever name. Lists are made once for each state of the registry.
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
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.registry import ToolRegistry
from toolreeve.serve.mcp.protocol import INVALID_PARAMS, WireError
from toolreeve.serve.mcp.tool_definitions import describe
from toolreeve.serve.mcp.toolset import EVERYTHING, Toolset

PAGE = 500
MOST_PAGES = 50
_NO_ALIASES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ToolPage:
    """`encoded` is the same list of tools as JSON."""

    tools: Sequence[Mapping[str, Any]]
    encoded: bytes
    next: str | None


@dataclass(frozen=True, slots=True)
class _Listing:
    """What the registry held at one version, as this view shows it."""

    version: int
    names: Sequence[str]
    tools: Sequence[Mapping[str, Any]]
    encoded: Sequence[bytes]


class ToolView:
    """`search` shows only tools that the toolset names outright; the others are found by searching. `spelled` gives
    tools other names than their own."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        toolset: Toolset = EVERYTHING,
        role: Role = Role.OPERATOR,
        search: bool = False,
        aliases: Mapping[str, str] = _NO_ALIASES,
    ) -> None:
        self.registry, self.toolset, self.role, self.search = registry, toolset, role, search
        self._aliases = aliases
        self._listed: _Listing | None = None
        self._pages: dict[tuple[int, int], ToolPage] = {}
        self._found: dict[str, BoundTool] = {}
        self._version = -1

    def admits(self, spec: ToolSpec) -> bool:
        """Whether the client may use a tool, be it listed or not."""
        return self.toolset.includes(spec) and (self.role is not Role.VIEWER or spec.read_only)

    def shows(self, spec: ToolSpec) -> bool:
        return not spec.hidden and self.admits(spec)

    def find(self, name: str) -> BoundTool | None:
        if self._version != self.registry.version:
            self._version, self._found = self.registry.version, {}
        if (found := self._found.get(name)) is None:
            found = self.registry.get(name)
            if found is None or not self.shows(found.spec):
                return None
            self._found[name] = found
        return found

    def matching(self, query: str, limit: int) -> Sequence[Mapping[str, Any]]:
        """The definitions of tools that have to do with a query, the best first."""
        found = self.registry.search(query, limit=len(self.registry))
        seen = [bound.spec for bound in found if self.shows(bound.spec)]
        return [describe(spec, self._name(spec)) for spec in seen[:limit]]

    def page(self, cursor: Any = None, first: Sequence[Mapping[str, Any]] = ()) -> ToolPage:
        """A part of the list. `first` stands before the tools of the first page."""
        listed = self._current()
        start = 0 if cursor is None else bisect_right(listed.names, read_cursor(cursor))
        key = (start, -1 if cursor is not None else len(first))
        if (made := self._pages.get(key)) is None:
            if len(self._pages) >= MOST_PAGES:  # cursors that nobody was given, to fill the memory
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
        return self.shows(spec) and (not self.search or self.toolset.includes_by_name(spec))

    def _name(self, spec: ToolSpec) -> str:
        return self._aliases.get(spec.name, spec.name)


def as_fragment(page: ToolPage) -> Any:
    return orjson.Fragment(page.encoded)


def write_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def read_cursor(cursor: Any) -> str:
    """The name after which a page begins: it holds even when tools came or went in between."""
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (TypeError, ValueError, binascii.Error):
        raise WireError(INVALID_PARAMS, "Invalid cursor") from None
