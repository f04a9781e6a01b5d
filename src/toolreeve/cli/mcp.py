"""`toolreeve mcp`: the MCP server on stdin and stdout.

Only the protocol goes to stdout; problems go to stderr. Approval is never asked for on a terminal, but through the
client. `initialize` is answered before the tools are loaded, which takes longer.
"""

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import note
from toolreeve.cli.toolset_options import toolset_options
from toolreeve.core.errors import ToolreeveError

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.serve.mcp.pipes import Pipes
    from toolreeve.serve.mcp.startup import StartupResponder
    from toolreeve.serve.mcp.stdio import StdioService


@click.command(cls=CliCommand)
@toolset_options
def mcp(tools: str | None, search: bool | None) -> None:  # noqa: FBT001
    """Serve the tools to an MCP client over stdin and stdout."""
    from toolreeve.runtime.build import check_workspace
    from toolreeve.serve.mcp.pipes import claim
    from toolreeve.serve.mcp.stdio import run

    pipes = claim()
    configuration = _without_own_servers(current().configuration())
    check_workspace(configuration)
    searches = configuration.settings.mcp.search if search is None else search
    run(_serve(configuration, pipes, tools=tools, search=searches))


def _without_own_servers(configuration: "Configuration") -> "Configuration":
    """Behind another toolreeve, no MCP servers are used: they may include the one that started us."""
    from toolreeve.upstream.server_spec import BEHIND

    if not os.environ.get(BEHIND) or not configuration.mcp_servers:
        return configuration
    note(f"started by another toolreeve: MCP servers are not started here; unset {BEHIND} to start them")
    return replace(configuration, mcp_servers=())


async def _serve(configuration: "Configuration", pipes: "Pipes", *, tools: str | None, search: bool) -> None:
    from toolreeve.runtime.principal import find_local_principal
    from toolreeve.serve.mcp.initialize import search_instructions, server_lines
    from toolreeve.serve.mcp.startup import StartupResponder
    from toolreeve.serve.mcp.stdio import serve_stdio

    servers = server_lines(configuration.mcp_servers)
    instructions = search_instructions(servers) if search else ""
    responder = StartupResponder(servers=bool(servers), instructions=instructions)
    principal = find_local_principal(configuration).for_agents
    async with serve_stdio(responder, pipes, principal=principal) as service:
        try:
            await _load_and_serve(configuration, responder, service, tools=tools, search=search)
        except Exception as problem:
            responder.give_up(str(problem))
            raise


async def _load_and_serve(
    configuration: "Configuration",
    responder: "StartupResponder",
    service: "StdioService",
    *,
    tools: str | None,
    search: bool,
) -> None:
    from toolreeve.cli.runtime import new_agent_tools
    from toolreeve.hook.server import serve_hooks
    from toolreeve.hook.service import HookRecord
    from toolreeve.runtime.principal import find_local_principal
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.mcp.client_roots import find_roots, narrow_workspace
    from toolreeve.serve.mcp.door import new_handlers, new_view

    roots = await find_roots(responder.initialized, service.connection, service.finished)
    configuration = narrow_workspace(configuration, roots, note)
    principal = find_local_principal(configuration).for_agents
    agents = new_agent_tools(configuration)
    reeve = Toolreeve(
        settings=configuration,
        approve=(),
        await_servers=False,
        principal=principal,
        origin="mcp",
        tools=agents.tools if agents is not None else (),
    )
    if agents is not None:
        agents.bind(reeve)
    for problem in reeve.problems:
        note(str(problem))
    try:
        view = new_view(reeve, tools=tools, search=search, role=reeve.principal.role)
    except ToolreeveError as problem:
        raise click.UsageError(str(problem)) from None
    record = HookRecord(reeve.internals.journal, lambda: reeve.internals.flow, lambda: reeve.approvals.store)
    async with reeve, serve_hooks(configuration, record):
        handlers = new_handlers(reeve)
        service.connection.hand_over(handlers, view)
        responder.complete(handlers, view)
        await _announce_secrets(configuration)
        await service.finished.wait()
        handlers.close()
        await service.close()


async def _announce_secrets(configuration: "Configuration") -> None:
    """In a thread: finding a keyring takes a moment. A missing one fails the secrets that need it, not the rest."""
    try:
        note(await asyncio.to_thread(lambda: configuration.secret_source.announcement))
    except ToolreeveError as problem:
        note(str(problem))
