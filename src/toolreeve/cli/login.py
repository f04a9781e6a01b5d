"""`toolreeve servers login` and `logout`: OAuth for MCP servers on the web."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import Options
from toolreeve.cli.output import note, say, say_json
from toolreeve.core.errors import ErrorCode, ExitStatus, ToolError
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.runtime.build import new_network_guard
from toolreeve.upstream.transports.transport import ServerUnavailable

if TYPE_CHECKING:
    from toolreeve.upstream.server_spec import ServerSpec


async def log_in(invocation: Options, spec: "ServerSpec") -> int:
    async with _reaching(invocation, spec) as http:
        from toolreeve.upstream.oauth.account import login

        granted = await login(spec, http=http, state=_state(invocation), authorize=_show_url)
    if invocation.json:
        say_json({"server": spec.name, "logged_in": granted})
    else:
        say(f"logged in to {spec.name}" if granted else f"{spec.name} asks for no login")
    return ExitStatus.OK


async def log_out(invocation: Options, spec: "ServerSpec") -> int:
    """Not being able to tell the server is said, and is no failure: nothing here can use the login any more."""
    async with _reaching(invocation, spec) as http:
        from toolreeve.upstream.oauth.account import logout

        left = await logout(spec, http=http, state=_state(invocation))
    if invocation.json:
        say_json({"server": spec.name, "logged_out": left.held, "revoked": left.revoked, "why": left.why})
    elif not left.held:
        say(f"there is no login to {spec.name}")
    else:
        say(f"logged out of {spec.name}" + ("; its tokens are revoked" if left.revoked else ""))
    if left.why:
        note(f"the tokens are deleted here, but not revoked: {left.why}; they are good until they run out")
    return ExitStatus.OK


@asynccontextmanager
async def _reaching(invocation: Options, spec: "ServerSpec") -> AsyncIterator[GuardedHttp]:
    """Raises UsageError for a server that is not on the web, ToolError where it cannot be reached."""
    if spec.kind == "stdio":
        raise click.UsageError(f"{spec.name!r} is started here and asks for no login")
    http = GuardedHttp(new_network_guard(invocation.configuration()))
    try:
        yield http
    except ServerUnavailable as problem:
        raise ToolError(ErrorCode.UPSTREAM, f"{spec.name}: {problem}") from None
    finally:
        await http.close()


def _state(invocation: Options) -> Path:
    return Path(invocation.configuration().settings.state.dir)


async def _show_url(url: str) -> None:
    import webbrowser

    note(f"open this address to log in: {url}")
    await asyncio.to_thread(webbrowser.open, url)
