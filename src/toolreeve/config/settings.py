"""The settings tree: plain values, each with its description and project scope.

Every field here is wired to the code that obeys it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from toolreeve.config.field import Field, ProjectScope
from toolreeve.config.sections.a2a import A2a
from toolreeve.config.sections.agent import Agent
from toolreeve.config.sections.approval import Approval
from toolreeve.config.sections.commands import Commands
from toolreeve.config.sections.connectors import Connectors
from toolreeve.config.sections.hooks import Hooks
from toolreeve.config.sections.limits import Limits
from toolreeve.config.sections.mcp import Mcp
from toolreeve.config.sections.network import Network
from toolreeve.config.sections.policy import Policy
from toolreeve.config.sections.principal import LocalUser
from toolreeve.config.sections.quality import Quality
from toolreeve.config.sections.record import Record
from toolreeve.config.sections.sandbox import Sandbox
from toolreeve.config.sections.secrets import Secrets
from toolreeve.config.sections.serve import Serve
from toolreeve.config.sections.state import State
from toolreeve.config.sections.trial import Trial
from toolreeve.config.sections.workers import Workers
from toolreeve.config.sections.workspace import Workspace
from toolreeve.config.table_schemas import ACP_AGENTS, SERVERS


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """The configuration of Toolreeve."""

    workspace: Workspace = field(default_factory=Workspace)
    policy: Policy = field(default_factory=Policy)
    principal: LocalUser = field(default_factory=LocalUser)
    approval: Approval = field(default_factory=Approval)
    limits: Limits = field(default_factory=Limits)
    network: Network = field(default_factory=Network)
    sandbox: Sandbox = field(default_factory=Sandbox)
    commands: Commands = field(default_factory=Commands)
    trial: Trial = field(default_factory=Trial)
    quality: Quality = field(default_factory=Quality)
    record: Record = field(default_factory=Record)
    secrets: Secrets = field(default_factory=Secrets)
    state: State = field(default_factory=State)
    mcp: Mcp = field(default_factory=Mcp)
    serve: Serve = field(default_factory=Serve)
    a2a: A2a = field(default_factory=A2a)
    hooks: Hooks = field(default_factory=Hooks)
    workers: Workers = field(default_factory=Workers)
    connectors: Connectors = field(default_factory=Connectors)
    agent: Agent = field(default_factory=Agent)
    mcp_servers: Annotated[
        Mapping[str, Any],
        Field(
            "MCP servers by name. They run as programs: those of a project are ignored until the folder is trusted "
            "(`toolreeve trust`).",
            ProjectScope.WHEN_TRUSTED,
            shape=SERVERS,
            also=("mcpServers", "McpServers"),
        ),
    ] = field(default_factory=dict, repr=False)
    acp_agents: Annotated[
        Mapping[str, Any],
        Field(
            "Agents that speak the Agent Client Protocol, by name. Each runs in the sandbox, and is offered as a tool.",
            ProjectScope.NEVER,
            shape=ACP_AGENTS,
        ),
    ] = field(default_factory=dict, repr=False)
    a2a_agents: Annotated[
        Mapping[str, Any],
        Field(
            "A2A agents by name: each of their skills is a tool. They are pinned and limited like MCP servers; those "
            "of a project are ignored until the folder is trusted (`toolreeve trust`).",
            ProjectScope.WHEN_TRUSTED,
            shape=SERVERS,
        ),
    ] = field(default_factory=dict, repr=False)
    tool_files: Annotated[
        tuple[str, ...],
        Field(
            "Python files whose @tool functions are registered, and YAML files that declare tools. They run as code: "
            "those of a project are ignored until the folder is trusted (`toolreeve trust`).",
            ProjectScope.WHEN_TRUSTED,
            paths=True,
        ),
    ] = ()
    error_profile: Annotated[
        Literal["acp-basic", "extended-json"],
        Field(
            "How errors of YAML tools are reported: acp-basic puts a text into the detail of an error, extended-json a "
            "JSON object.",
            ProjectScope.NEVER,
        ),
    ] = "acp-basic"

    def __repr__(self) -> str:
        """Only the tables that are not as shipped."""
        shipped = Settings()
        changed = [each.name for each in fields(self) if getattr(self, each.name) != getattr(shipped, each.name)]
        return f"<Settings: {', '.join(changed) or 'as shipped'}>"
