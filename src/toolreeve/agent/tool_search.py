"""`search_tools`: finds tools that a model has not been shown."""

from typing import Any

from toolreeve.core.tool import BoundTool, bind, tool
from toolreeve.formats.summary import summary_line
from toolreeve.registry import ToolRegistry

SEARCH = "search_tools"
MAX_FOUND = 20


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
