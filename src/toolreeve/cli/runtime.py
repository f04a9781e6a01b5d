"""What does a command work with? The runtime of the configuration, with the terminal as the way to ask."""

import os
import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.cli.options import Options
from toolreeve.core.errors import ConfigError

if TYPE_CHECKING:
    from toolreeve.approval.channel import Channel
    from toolreeve.config import Configuration
    from toolreeve.guard.files.workspace import WorkspaceFiles
    from toolreeve.guard.network.guard import NetworkGuard
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.upstream.server_spec import ServerSpec


def new_runtime(
    invocation: Options, *channels: "Channel", servers: "Callable[[ServerSpec], bool] | None" = None
) -> "Toolreeve":
    """Built, not started: its tools and its policy can be looked at without a database.

    `servers` chooses the MCP servers that it connects to; all of them, if nothing is said. None is waited for.
    """
    from toolreeve.cli.output import note
    from toolreeve.runtime.toolreeve import Toolreeve

    configuration = invocation.configuration()
    if servers is not None:
        configuration = replace(configuration, mcp_servers=tuple(filter(servers, configuration.mcp_servers)))
    runtime = Toolreeve(settings=configuration, approve=channels or (_terminal(),), await_servers=False, origin="cli")
    for problem in runtime.problems:
        note(str(problem))
    return runtime


def check_workspace(configuration: "Configuration") -> None:
    """Raises ConfigError where nobody said where to work and we stand in `/`: some programs start theirs there, and
    none means that their tools may read the whole machine."""
    folder = Path(configuration.settings.workspace.dir)
    if configuration.origins["workspace.dir"] == "default" and folder == folder.parent:
        raise ConfigError(
            f"we were started in {str(folder)!r}, and the whole file system is no workspace",
            source="current directory",
            key="workspace.dir",
            fix=f"start it with --workspace DIR, or set workspace.dir in {configuration.user_file}",
        )


def no_servers(_: "ServerSpec") -> bool:
    """For commands that need none."""
    return False


def servers_of(tool: str) -> "Callable[[ServerSpec], bool]":
    """For a call of one tool: those that could have it."""
    from toolreeve.upstream.pool import may_have

    return lambda spec: may_have(spec, tool)


@asynccontextmanager
async def knowing(invocation: Options, tools: "Iterable[str]") -> "AsyncIterator[Toolreeve]":
    """A runtime that has these tools, if they can be had; it is started only where servers must be asked for them.

    Raises ToolError where a server that one of them names is away.
    """
    from toolreeve.core.call import ToolCall
    from toolreeve.upstream.pool import may_have

    local = new_runtime(invocation, servers=no_servers)
    elsewhere = [tool for tool in tools if tool not in local.tools]
    if not any(may_have(spec, tool) for spec in invocation.configuration().mcp_servers for tool in elsewhere):
        yield local
        return
    async with new_runtime(invocation, servers=lambda spec: any(may_have(spec, each) for each in elsewhere)) as runtime:
        for tool in elsewhere:
            await runtime.fleet.expect(ToolCall(tool=tool, args={}))
        yield runtime


def _terminal() -> "Channel":
    from toolreeve.approval.channels.terminal import TerminalChannel

    return TerminalChannel(editor=shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""))


@contextmanager
def new_workspace(invocation: Options) -> "Iterator[WorkspaceFiles]":
    workspace = new_runtime(invocation).files
    try:
        yield workspace
    finally:
        workspace.close()


def new_network(invocation: Options, hosts: Path | None) -> "NetworkGuard":
    """The guard as configured; with a file of hosts, names are looked up there and nowhere else."""
    from toolreeve.guard.network.resolver import HostsResolver, parse_hosts
    from toolreeve.runtime.build import new_network_guard

    configuration = invocation.configuration()
    if hosts is None:
        return new_network_guard(configuration)
    try:
        known = parse_hosts(hosts.read_text())
    except (ValueError, OSError) as problem:
        raise ConfigError(str(problem), source=hosts) from None
    return new_network_guard(configuration, HostsResolver(known))
