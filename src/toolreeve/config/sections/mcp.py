"""The [mcp] table: what MCP clients see, and further server files."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope
from toolreeve.config.table_schemas import REFERENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Mcp:
    """What MCP clients see, and where else servers are configured."""

    tools: Annotated[
        tuple[str, ...],
        Field(
            "The tools that clients see: names, patterns such as git__*, and toolsets; all for every tool. If empty, "
            "builtin tools that another one covers are not listed, but can be called.",
            ProjectScope.NEVER,
        ),
    ] = ()
    search: Annotated[
        bool,
        Field("Show clients search_tools and call_tool instead of every tool.", ProjectScope.NEVER),
    ] = False
    list_wait: Annotated[
        float,
        Field(
            "Seconds after the start that a tool list waits for servers that are still connecting. Clients are "
            "notified of tools that come later.",
            ProjectScope.NEVER,
            at_least=0,
        ),
    ] = 1.0
    files: Annotated[
        tuple[str, ...],
        Field("Configuration files of other clients whose servers are used as well.", ProjectScope.NEVER, paths=True),
    ] = ()
    project_file: Annotated[
        bool,
        Field(
            "Whether the servers of a workspace's .mcp.json are used, once the folder is trusted (`toolreeve trust`).",
            ProjectScope.TURN_OFF,
        ),
    ] = True
    state_key: Annotated[
        tuple[str, ...],
        Field(
            "The secrets that seal the state which clients carry between requests, each as ${secret:NAME}, newest "
            "first; the same for all workers. If empty, one is generated in the state directory.",
            ProjectScope.NEVER,
            shape={"type": "array", "items": {"type": "string", "pattern": REFERENCE}},
        ),
    ] = ()
