"""`toolreeve servers login` and `logout`: OAuth for remote MCP servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import Options
from toolreeve.cli.output import note, print_json, print_text
from toolreeve.core.errors import ErrorCode, ExitStatus, ToolError
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.runtime.build import new_network_guard
from toolreeve.upstream.transports.transport import ServerUnavailable

if TYPE_CHECKING:
    from toolreeve.upstream.server_spec import ServerSpec


async def log_in(options: Options, spec: "ServerSpec") -> int:
    async with _open_http(options, spec) as http:
        from toolreeve.upstream.oauth.account import login

        granted = await login(spec, http=http, state=_state(options), authorize=_show_url)
    if options.json:
        print_json({"server": spec.name, "logged_in": granted})
    else:
        print_text(f"logged in to {spec.name}" if granted else f"{spec.name} requires no login")
    return ExitStatus.OK


async def log_out(options: Options, spec: "ServerSpec") -> int:
    """A failed revocation is reported but is no failure: the login cannot be used here any more."""
    async with _open_http(options, spec) as http:
        from toolreeve.upstream.oauth.account import logout

        left = await logout(spec, http=http, state=_state(options))
    if options.json:
        print_json({"server": spec.name, "logged_out": left.held, "revoked": left.revoked, "why": left.why})
    elif not left.held:
        print_text(f"not logged in to {spec.name}")
    else:
        print_text(f"logged out of {spec.name}" + ("; its tokens are revoked" if left.revoked else ""))
    if left.why:
        note(f"the tokens are deleted here, but not revoked: {left.why}; they stay valid until they expire")
    return ExitStatus.OK


@asynccontextmanager
async def _open_http(options: Options, spec: "ServerSpec") -> AsyncIterator[GuardedHttp]:
    """Raises UsageError for a local server, ToolError if the server is unavailable."""
    if spec.kind == "stdio":
        raise click.UsageError(f"{spec.name!r} runs locally (stdio) and requires no login")
    http = GuardedHttp(new_network_guard(options.configuration()))
    try:
        yield http
    except ServerUnavailable as problem:
        raise ToolError(ErrorCode.UPSTREAM, f"{spec.name}: {problem}") from None
    finally:
        await http.close()


def _state(options: Options) -> Path:
    return Path(options.configuration().settings.state.dir)


async def _show_url(url: str) -> None:
    import webbrowser

    note(f"open this URL to log in: {url}")
    await asyncio.to_thread(webbrowser.open, url)
