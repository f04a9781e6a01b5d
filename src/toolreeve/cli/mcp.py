"""How do other programs use our tools over stdin and stdout? As an MCP server that they start.

Only the protocol goes to stdout; what is wrong is said on stderr. Nobody is asked on a terminal here, but
the client, or whoever the configuration names.
"""

from typing import TYPE_CHECKING

import click

from toolreeve.cli.invocation import Command, current
from toolreeve.cli.output import note

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.serve.mcp.pipes import Pipes


@click.command(cls=Command)
@click.option(
    "--tools",
    metavar="PATTERNS",
    help="What to show: categories, servers, names, globs, separated by commas; -NAME takes away.",
)
@click.option(
    "--search/--no-search", default=None, help="List only search_tools, call_tool, and what --tools names outright."
)
def mcp(tools: str | None, search: bool | None) -> None:  # noqa: FBT001
    """Serve the tools to an MCP client over stdin and stdout."""
    from toolreeve.serve.mcp.pipes import claim
    from toolreeve.serve.mcp.stdio import run

    pipes = claim()
    run(_serve(current().configuration(), pipes, tools=tools, search=search))


async def _serve(configuration: "Configuration", pipes: "Pipes", *, tools: str | None, search: bool | None) -> None:
    from toolreeve.runtime import Toolreeve
    from toolreeve.serve.mcp.door import new_desk, new_view
    from toolreeve.serve.mcp.stdio import serve

    reeve = Toolreeve(settings=configuration, approve=(), origin="mcp")
    for problem in reeve.problems:
        note(str(problem))
    view = new_view(reeve, tools=tools, search=search)
    async with reeve:
        desk = new_desk(reeve)
        try:
            await serve(desk, pipes, view=view)
        finally:
            desk.close()
