"""The tools of a runtime, as an agent sees them."""

from collections.abc import Sequence
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import BoundTool, ToolSpec, bind, tool
from toolreeve.formats import ParsedCall
from toolreeve.formats.summary import summary_line
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.toolreeve import Toolreeve

SEARCH = "search_tools"
MAX_FOUND = 20
MOST_SHOWN = 64
"""Beyond this many, the others are found by search: a model chooses badly among hundreds, and each costs context."""
MOST_FOUND = 64


class ReeveTools:
    def __init__(self, reeve: Toolreeve, session: str) -> None:
        self._reeve = reeve
        self._session = session
        self._found: dict[str, None] = {}

    def specs(self) -> Sequence[ToolSpec]:
        """At most `MOST_SHOWN`, builtin ones first, and those that the model has called or found."""
        registry = self._reeve.tools
        specs = [bound.spec for bound in registry.list()]
        if len(specs) <= MOST_SHOWN:
            return specs
        if SEARCH not in registry:
            specs.append(registry.register(new_search_tool(registry)).spec)
        specs.sort(key=lambda spec: (spec.name != SEARCH, spec.server is not None))
        return [*specs[:MOST_SHOWN], *(spec for spec in specs[MOST_SHOWN:] if spec.name in self._found)]

    async def run(self, call: ParsedCall) -> ToolResult:
        """A tool that is registered but was not shown runs as well, and is shown from then on."""
        result = await self._reeve.run(
            ToolCall(
                tool=call.name,
                args=call.args,
                session=self._session,
                principal=self._reeve.principal,
                origin="agent",
            )
        )
        if call.name in self._reeve.tools:
            self._show(call.name)
        if call.name == SEARCH:
            self._show(*result.data.get("tools", ()))
        return result

    def _show(self, *names: str) -> None:
        """The latest `MOST_FOUND` stay."""
        for name in names:
            self._found.pop(name, None)
            self._found[name] = None
        for name in list(self._found)[:-MOST_FOUND]:
            del self._found[name]

    async def spend(self, dollars: float) -> bool:
        return await self._reeve.internals.spend(dollars)


def new_search_tool(registry: ToolRegistry) -> BoundTool:
    @tool(name=SEARCH, danger="safe", category="meta", read_only=True)
    def search_tools(query: str, limit: int = 10) -> dict[str, Any]:
        """Find tools that are not listed, by what they do. Those that are found can be called from then on.

        Args:
            query: Words that say what is to be done.
            limit: Maximum number of tools.
        """
        found = [bound.spec for bound in registry.search(query, limit=max(1, min(limit, MAX_FOUND)))]
        return {
            "tools": [spec.name for spec in found if spec.name != SEARCH],
            "lines": [summary_line(spec.name, spec.description, spec.input) for spec in found if spec.name != SEARCH],
        }

    return bind(search_tools)
