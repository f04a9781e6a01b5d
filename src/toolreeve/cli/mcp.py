"""How do other programs use our tools over stdin and stdout? As an MCP server that they start.

Only the protocol goes to stdout; what is wrong is said on stderr. Nobody is asked on a terminal here, but the client,
or whoever the configuration names. The client is greeted before the tools are there: they take longer to bring.
"""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import note
from toolreeve.cli.toolset_options import shows_tools
from toolreeve.core.errors import ToolreeveError

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.serve.mcp.pipes import Pipes
    from toolreeve.serve.mcp.startup import StartupResponder
    from toolreeve.serve.mcp.stdio import StdioService


@click.command(cls=CliCommand)
@shows_tools
def mcp(tools: str | None, search: bool | None) -> None:  # noqa: FBT001
    """Serve the tools to an MCP client over stdin and stdout."""
    from toolreeve.cli.runtime import check_workspace
    from toolreeve.serve.mcp.pipes import claim
    from toolreeve.serve.mcp.stdio import run

    pipes = claim()
    configuration = _without_ourselves(current().configuration())
    check_workspace(configuration)
    searches = configuration.settings.mcp.search if search is None else search
    run(_serve(configuration, pipes, tools=tools, search=searches))


def _without_ourselves(configuration: "Configuration") -> "Configuration":
    """Started as a server of our own, we serve our tools alone: our servers may be what started us."""
    from toolreeve.upstream.server_spec import BEHIND

    if not os.environ.get(BEHIND) or not configuration.mcp_servers:
        return configuration
    note(
        f"started behind another toolreeve, so no servers are started here; set {BEHIND} to nothing if they are others"
    )
    return replace(configuration, mcp_servers=())


async def _serve(configuration: "Configuration", pipes: "Pipes", *, tools: str | None, search: bool) -> None:
    from toolreeve.serve.mcp.startup import StartupResponder
    from toolreeve.serve.mcp.stdio import serve_stdio

    responder = StartupResponder(servers=any(server.enabled for server in configuration.mcp_servers), search=search)
    async with serve_stdio(responder, pipes) as service:
        try:
            await _bring(configuration, responder, service, tools=tools, search=search)
        except Exception as problem:
            responder.give_up(str(problem))
            raise


async def _bring(
    configuration: "Configuration",
    responder: "StartupResponder",
    service: "StdioService",
    *,
    tools: str | None,
    search: bool,
) -> None:
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.mcp.door import new_handlers, new_view

    reeve = Toolreeve(settings=configuration, approve=(), await_servers=False, origin="mcp")
    for problem in reeve.problems:
        note(str(problem))
    try:
        view = new_view(reeve, tools=tools, search=search)
    except ToolreeveError as problem:
        raise click.UsageError(str(problem)) from None
    async with reeve:
        handlers = new_handlers(reeve)
        service.connection.hand_over(handlers, view)
        responder.complete(handlers, view)
        await service.finished.wait()
        handlers.close()
        await service.close()
