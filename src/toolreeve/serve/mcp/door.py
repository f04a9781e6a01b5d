"""Builds the MCP door of a runtime: handlers and tool view."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from toolreeve.core.call import Role
from toolreeve.core.toolset import check_toolset, read_toolset
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.input_required import new_input_required
from toolreeve.serve.mcp.tool_view import ToolView

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve


def new_handlers(reeve: "Toolreeve") -> Handlers:
    """Must be called in the event loop, for a started runtime."""
    return Handlers(reeve, input_required=new_input_required(reeve))


def new_view(
    reeve: "Toolreeve",
    *,
    tools: str | Iterable[str] | None = None,
    search: bool | None = None,
    role: Role = Role.OPERATOR,
) -> ToolView:
    """Arguments left out are taken from the settings. Raises ToolreeveError for a toolset word that matches nothing."""
    chosen = reeve.configuration.settings.mcp
    toolset = read_toolset(chosen.tools if tools is None else tools)
    servers = prefixes(reeve)
    check_toolset(toolset, [bound.spec for bound in reeve.tools.list()], {*servers, *servers.values()})
    return ToolView(reeve.tools, toolset=toolset, role=role, search=chosen.search if search is None else search)


def prefixes(reeve: "Toolreeve") -> Mapping[str, str]:
    """The tool name prefix of each configured server."""
    return reeve.fleet.prefixes()
