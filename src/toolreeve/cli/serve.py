"""How are the tools offered over HTTP? A server on this machine alone, unless tokens say who else may come in."""

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.invocation import Command, Invocation, current
from toolreeve.cli.output import note

if TYPE_CHECKING:
    import socket

    from toolreeve.config import Settings
    from toolreeve.serve.tokens import Tokens


@click.command(cls=Command)
@click.option("--mcp", is_flag=True, help="Serve MCP at /mcp (streamable HTTP).")
@click.option("--host", metavar="ADDRESS", help="The address to listen on; others than this machine need a token.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port to listen on; 0 takes one that is free.")
@click.option("--tools", multiple=True, metavar="PATTERNS", help="What is shown: categories, servers, names, globs.")
@click.option("--search", is_flag=True, help="List only search_tools and call_tool; the rest is found by searching.")
def serve(*, mcp: bool, host: str | None, port: int | None, tools: tuple[str, ...], search: bool) -> int:
    """Serve the tools over HTTP until stopped."""
    if not mcp:
        raise click.UsageError("say what to serve: --mcp")
    invocation = current()
    settings = invocation.configuration().settings
    tokens = _tokens(invocation)
    place = _bind(host or settings.serve.host, settings.serve.port if port is None else port, tokens)
    with place:
        _run(_serve(invocation, place, tokens, tools or settings.mcp.tools, search=search or settings.mcp.search))
    return 0


def _tokens(invocation: Invocation) -> "Tokens":
    from toolreeve.serve.tokens import read_tokens

    configuration = invocation.configuration()
    return read_tokens(configuration.settings.serve.tokens, configuration.secret_source.find)


def _bind(host: str, port: int, tokens: "Tokens") -> "socket.socket":
    from toolreeve.serve.app import bind, check_reach

    check_reach(host, tokens)
    return bind(host, port)


def _run(work: Coroutine[Any, Any, None]) -> None:
    factory = None
    if sys.platform != "win32":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


async def _serve(
    invocation: Invocation, place: "socket.socket", tokens: "Tokens", tools: Sequence[str], *, search: bool
) -> None:
    from toolreeve.cli.world import new_runtime
    from toolreeve.serve.app import MCP, HttpServer, new_application
    from toolreeve.serve.gate import new_gate
    from toolreeve.serve.mcp.http import Views
    from toolreeve.serve.mcp.patterns import read_patterns

    settings: Settings = invocation.configuration().settings
    host, port = place.getsockname()[:2]
    gate = new_gate(host, tokens, hosts=settings.serve.allowed_hosts, origins=settings.serve.allowed_origins)
    runtime = new_runtime(invocation)
    views = Views(runtime.tools, patterns=read_patterns(tools), search=search)
    async with runtime, new_application(runtime, gate, views) as application:
        note(f"MCP at http://{f'[{host}]' if ':' in host else host}:{port}{MCP}")
        await HttpServer(application).serve([place])
