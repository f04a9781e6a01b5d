"""The runtime of a command: as configured, with approval on the terminal."""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.cli.options import Options
from toolreeve.core.errors import ConfigError

if TYPE_CHECKING:
    from toolreeve.acp.client.agent_tools import AgentTools
    from toolreeve.approval.channel import Channel
    from toolreeve.config import Configuration
    from toolreeve.core.trial import Confinement
    from toolreeve.guard.files.workspace import WorkspaceFiles
    from toolreeve.guard.network.guard import NetworkGuard
    from toolreeve.policy.state import PolicyState
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.upstream.server_spec import ServerSpec


def new_runtime(
    options: Options, *channels: "Channel", servers: "Callable[[ServerSpec], bool] | None" = None
) -> "Toolreeve":
    """Built, not started: its tools and policy can be inspected without a database.

    `servers` selects the MCP servers to connect to, by default all. None of them is awaited.
    """
    from toolreeve.cli.output import note
    from toolreeve.runtime.channels import new_terminal_channel
    from toolreeve.runtime.toolreeve import Toolreeve

    configuration = options.configuration()
    if servers is not None:
        configuration = replace(configuration, mcp_servers=tuple(filter(servers, configuration.mcp_servers)))
    approve = channels or (new_terminal_channel(os.environ),)
    agents = new_agent_tools(configuration)
    runtime = Toolreeve(
        settings=configuration,
        approve=approve,
        await_servers=False,
        origin="cli",
        tools=agents.tools if agents is not None else (),
    )
    if agents is not None:
        agents.bind(runtime)
    for problem in runtime.problems:
        note(str(problem))
    return runtime


def new_agent_tools(configuration: "Configuration") -> "AgentTools | None":
    """The configured ACP agents; one that cannot work is left out, and the user is told why."""
    from toolreeve.cli.output import note

    if not configuration.settings.acp_agents and not configuration.known.environ.get("A2A_AGENT_COMMAND"):
        return None
    from toolreeve.acp.client.agent_tools import AgentTools
    from toolreeve.acp.client.agents import read_agents

    return AgentTools(list(read_agents(configuration, lambda problem: note(str(problem))).values()))


async def policy_state(configuration: "Configuration") -> "PolicyState":
    """The policy as a runtime of this configuration applies it, with the confinements that the sandbox enforces."""
    from toolreeve.runtime.policy_source import PolicySource

    policy = PolicySource(configuration, None)
    policy.enforce(await find_confinements(configuration))
    return policy()


async def find_confinements(configuration: "Configuration") -> "frozenset[Confinement]":
    """Those that the sandbox of this configuration enforces."""
    from toolreeve.runtime.processes import new_processes

    processes = new_processes(configuration)
    try:
        return await processes.confinements()
    finally:
        await processes.close()


def no_servers(_: "ServerSpec") -> bool:
    return False


def servers_with(tool: str) -> "Callable[[ServerSpec], bool]":
    """Selects the servers that may have a tool."""

    def may_have_it(spec: "ServerSpec") -> bool:
        from toolreeve.upstream.pool import may_have

        return may_have(spec, tool)

    return may_have_it


@asynccontextmanager
async def runtime_with(options: Options, tools: "Iterable[str]") -> "AsyncIterator[Toolreeve]":
    """A runtime that has these tools, if available; it is started only if servers must be asked for them.

    Raises ToolError if the server of one of them is unavailable.
    """
    from toolreeve.core.call import ToolCall
    from toolreeve.upstream.pool import may_have

    local = new_runtime(options, servers=no_servers)
    missing = [tool for tool in tools if tool not in local.tools]

    def has_missing(spec: "ServerSpec") -> bool:
        return any(may_have(spec, tool) for tool in missing)

    if not any(map(has_missing, options.configuration().mcp_servers)):
        yield local
        return
    async with new_runtime(options, servers=has_missing) as runtime:
        for tool in missing:
            await runtime.fleet.expect(ToolCall(tool=tool, args={}))
        yield runtime


@contextmanager
def new_workspace(options: Options) -> "Iterator[WorkspaceFiles]":
    workspace = new_runtime(options).internals.files
    try:
        yield workspace
    finally:
        workspace.close()


def new_network(options: Options, hosts: Path | None) -> "NetworkGuard":
    """The configured guard; with a hosts file, names are resolved there and nowhere else."""
    from toolreeve.guard.network.resolver import HostsResolver, parse_hosts
    from toolreeve.runtime.build import new_network_guard

    configuration = options.configuration()
    if hosts is None:
        return new_network_guard(configuration)
    try:
        known = parse_hosts(hosts.read_text())
    except (ValueError, OSError) as problem:
        raise ConfigError(str(problem), source=hosts) from None
    return new_network_guard(configuration, HostsResolver(known))
