"""`toolreeve serve`: the HTTP server; without tokens, on loopback only."""

from functools import partial
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import note
from toolreeve.cli.toolset_options import toolset_options

if TYPE_CHECKING:
    import socket

    from toolreeve.serve.tokens import Tokens


@click.command(cls=CliCommand)
@click.option("--mcp", is_flag=True, help="Serve MCP at /mcp (streamable HTTP).")
@click.option("--host", metavar="ADDRESS", help="The address to listen on; any other than loopback needs a token.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port to listen on; 0 picks a free one.")
@toolset_options
def serve(*, mcp: bool, host: str | None, port: int | None, tools: str | None, search: bool | None) -> int:
    """Serve the tools over HTTP until stopped."""
    if not mcp:
        raise click.UsageError("choose what to serve: --mcp")
    from toolreeve.runtime.build import check_workspace
    from toolreeve.serve.app import bind, check_exposure
    from toolreeve.serve.mcp.stdio import run
    from toolreeve.serve.memory import give_back_memory
    from toolreeve.serve.tokens import read_tokens

    give_back_memory()
    configuration = current().configuration()
    check_workspace(configuration)
    chosen = configuration.settings.serve
    tokens = read_tokens(chosen.tokens, partial(configuration.reveal, key="serve.tokens"))
    check_exposure(host or chosen.host, tokens)
    with bind(host or chosen.host, chosen.port if port is None else port) as place:
        run(_serve(current(), place, tokens, tools=tools, search=search))
    return 0


async def _serve(
    options: Options, place: "socket.socket", tokens: "Tokens", *, tools: str | None, search: bool | None
) -> None:
    from toolreeve.cli.runtime import new_runtime
    from toolreeve.serve.access import new_access_control
    from toolreeve.serve.app import MCP, HttpServer, new_application
    from toolreeve.serve.limits import describe, read_limits
    from toolreeve.serve.mcp.door import new_view, prefixes
    from toolreeve.serve.mcp.http import ToolViews

    chosen = options.configuration().settings.serve
    host, port = place.getsockname()[:2]
    access = new_access_control(host, tokens, hosts=chosen.allowed_hosts, origins=chosen.allowed_origins)
    runtime = new_runtime(options)
    views = ToolViews(new_view(runtime, tools=tools, search=search))
    views.check(tokens.credentials(), prefixes(runtime).values())
    limits = read_limits(chosen)
    async with runtime, new_application(runtime, access, views, limits) as application:
        note(f"MCP at http://{f'[{host}]' if ':' in host else host}:{port}{MCP}")
        note(f"at most {'; '.join(describe(limits))}")
        await HttpServer(application, limits).serve([place])
