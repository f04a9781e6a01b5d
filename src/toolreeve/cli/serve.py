"""`toolreeve serve`: all doors on one port; without tokens, on loopback only."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import count, note
from toolreeve.cli.toolset_options import toolset_options

if TYPE_CHECKING:
    import socket

    from toolreeve.config import Configuration
    from toolreeve.serve.tokens import Tokens


@click.command(cls=CliCommand)
@click.option("--mcp", is_flag=True, help="Accepted for earlier releases: MCP is always served.")
@click.option("--host", metavar="ADDRESS", help="The address to listen on; any other than loopback needs a token.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port to listen on; 0 picks a free one.")
@toolset_options
def serve(*, mcp: bool, host: str | None, port: int | None, tools: str | None, search: bool | None) -> int:  # noqa: ARG001
    """Serve the console, REST, MCP, A2A and metrics over HTTP until stopped."""
    from toolreeve.runtime.build import check_workspace
    from toolreeve.serve.app import bind, check_exposure
    from toolreeve.serve.limits import give_back_memory
    from toolreeve.serve.mcp.stdio import run

    give_back_memory()
    configuration = current().configuration()
    check_workspace(configuration)
    chosen = configuration.settings.serve
    tokens = _read_tokens(configuration)
    check_exposure(host or chosen.host, tokens)
    with bind(host or chosen.host, chosen.port if port is None else port) as place:
        run(_serve(current(), place, tokens, tools=tools, search=search))
    return 0


def _read_tokens(configuration: "Configuration") -> "Tokens":
    """Those of the configuration, and those of `toolreeve tokens`."""
    from toolreeve.cli.tokens import stored_credentials
    from toolreeve.serve.tokens import read_tokens

    reveal = partial(configuration.reveal, key="serve.tokens")
    tokens = read_tokens(configuration.settings.serve.tokens, reveal)
    tokens.replace_stored(asyncio.run(stored_credentials(configuration)))
    return tokens


async def _serve(
    options: Options, place: "socket.socket", tokens: "Tokens", *, tools: str | None, search: bool | None
) -> None:
    import os
    import time

    from toolreeve.approval.channels.inbox import InboxChannel
    from toolreeve.cli.local_setup import new_local_setup
    from toolreeve.cli.runtime import new_runtime
    from toolreeve.core.version import VERSION
    from toolreeve.hook.server import serve_hooks
    from toolreeve.hook.service import HookRecord
    from toolreeve.runtime.channels import new_terminal_channel
    from toolreeve.runtime.principal import find_local_principal
    from toolreeve.serve.access import new_access_control
    from toolreeve.serve.api.router import PREFIX
    from toolreeve.serve.app import MCP, HttpServer
    from toolreeve.serve.doors import A2A_MISSING, has_a2a, new_application
    from toolreeve.serve.limits import describe, read_limits
    from toolreeve.serve.login import new_link
    from toolreeve.serve.mcp.door import new_view, prefixes
    from toolreeve.serve.mcp.http import ToolViews
    from toolreeve.serve.oidc import read_oidc
    from toolreeve.serve.running_server import RunningServer, announce
    from toolreeve.serve.webhook_settings import SETTING, read_webhooks

    chosen = options.configuration().settings.serve
    host, port = place.getsockname()[:2]
    access = new_access_control(
        host,
        tokens,
        hosts=chosen.allowed_hosts,
        origins=chosen.allowed_origins,
        local=find_local_principal(options.configuration()).for_agents,
    )
    inbox = InboxChannel()
    runtime = new_runtime(options, new_terminal_channel(os.environ), inbox)
    views = ToolViews(new_view(runtime, tools=tools, search=search))
    views.check(tokens.credentials(), prefixes(runtime).values())
    limits = read_limits(chosen)
    oidc = read_oidc(chosen.oidc, partial(options.configuration().reveal, key="serve.oidc"))
    webhooks = read_webhooks(chosen.webhooks, partial(options.configuration().reveal, key=SETTING))
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    record = HookRecord(runtime.internals.journal, lambda: runtime.internals.flow, lambda: runtime.approvals.store)
    async with (
        runtime,
        serve_hooks(options.configuration(), record),
        new_application(
            runtime,
            access,
            views,
            limits,
            inbox=inbox,
            oidc=oidc,
            setup=new_local_setup(options),
            configured_webhooks=webhooks,
        ) as application,
    ):
        note(f"MCP at {url}{MCP}, REST at {url}{PREFIX}" + (f", A2A at {url}/a2a" if has_a2a() else ""))
        if not has_a2a():
            note(A2A_MISSING)
        elif grpc_port := options.configuration().settings.a2a.grpc_port:
            note(f"A2A over gRPC on port {grpc_port} (a2a.grpc_port), with a token")
        note(f"record in {runtime.audit.place}")
        workers = options.configuration().settings.workers
        if workers.pools:
            note(f"{count(len(workers.pools), 'worker pool')}: {', '.join(workers.pools)}, through NATS")
        if options.verbose:
            note(f"at most {', '.join(describe(limits, shares=True))}")
        note(options.configuration().secret_source.announcement)
        note(f"console, for one login:\n{await new_link(runtime.internals.store.credentials, time.time(), url)}")
        with announce(Path(options.configuration().settings.state.dir), RunningServer(url, VERSION)):
            await HttpServer(application, limits, grace=chosen.drain_seconds).serve([place])
