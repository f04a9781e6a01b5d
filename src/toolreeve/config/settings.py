"""What can be configured? One tree of plain values; each field says what it means and how far a project may go.

Every field here is wired to something that obeys it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from toolreeve.config.field import Field, ProjectScope
from toolreeve.config.sections.commands import Commands, Quality, Sandbox
from toolreeve.config.sections.policy import Approval, Limits, Policy
from toolreeve.config.sections.serve import Mcp, Serve
from toolreeve.config.sections.state import Record, State
from toolreeve.config.sections.workspace import Network, Workspace
from toolreeve.config.table_schemas import SERVERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of Toolreeve."""

    workspace: Workspace = field(default_factory=Workspace)
    policy: Policy = field(default_factory=Policy)
    approval: Approval = field(default_factory=Approval)
    limits: Limits = field(default_factory=Limits)
    network: Network = field(default_factory=Network)
    sandbox: Sandbox = field(default_factory=Sandbox)
    commands: Commands = field(default_factory=Commands)
    quality: Quality = field(default_factory=Quality)
    record: Record = field(default_factory=Record)
    state: State = field(default_factory=State)
    mcp: Mcp = field(default_factory=Mcp)
    serve: Serve = field(default_factory=Serve)
    mcp_servers: Annotated[
        Mapping[str, Any],
        Field(
            "MCP servers whose tools are offered, by name. They run as programs: a project's own are ignored until the "
            "folder is trusted (`toolreeve trust`).",
            ProjectScope.WHEN_TRUSTED,
            shape=SERVERS,
            also=("mcpServers", "McpServers"),
        ),
    ] = field(default_factory=dict, repr=False)
    tool_files: Annotated[
        tuple[str, ...],
        Field(
            "Python files whose @tool functions are registered, and YAML files that declare tools. They run as code: "
            "a project's own are ignored until the folder is trusted (`toolreeve trust`).",
            ProjectScope.WHEN_TRUSTED,
            paths=True,
        ),
    ] = ()
    error_profile: Annotated[
        Literal["acp-basic", "extended-json"],
        Field(
            "How failures of tools in YAML are told: acp-basic gives a text as the detail of an error, extended-json a "
            "structure.",
            ProjectScope.NEVER,
        ),
    ] = "acp-basic"
