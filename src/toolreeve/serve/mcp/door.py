"""How is the MCP door of a runtime opened? The desk and what its clients see, as configured."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from toolreeve.core.call import Role
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.input_required import new_input_required
from toolreeve.serve.mcp.tool_view import ToolView
from toolreeve.serve.mcp.toolset import check_toolset, read_toolset

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve


def new_handlers(reeve: "Toolreeve") -> Handlers:
    """Inside the loop, for a runtime that is started."""
    return Handlers(reeve, input_required=new_input_required(reeve))


def new_view(
    reeve: "Toolreeve",
    *,
    tools: str | Iterable[str] | None = None,
    search: bool | None = None,
    role: Role = Role.OPERATOR,
) -> ToolView:
    """What is not given is as the settings have it. Raises ToolreeveError for a word that chooses nothing."""
    chosen = reeve.configuration.settings.mcp
    toolset = read_toolset(chosen.tools if tools is None else tools)
    servers = prefixes(reeve)
    check_toolset(toolset, [bound.spec for bound in reeve.tools.list()], {*servers, *servers.values()})
    return ToolView(reeve.tools, toolset=toolset, role=role, search=chosen.search if search is None else search)


def prefixes(reeve: "Toolreeve") -> Mapping[str, str]:
    """What the names of the tools of each configured server begin with."""
    return reeve.fleet.prefixes()
