"""`toolreeve tokens`: add, list and revoke tokens of the HTTP server.

A token is printed once, when it is made; only its digest is stored.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from toolreeve.cli.options import CliGroup, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.cli.record import format_time
from toolreeve.core.call import Role
from toolreeve.core.errors import ErrorCode, ExitStatus, ToolError

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.record.credentials import CredentialTable, StoredCredential

T = TypeVar("T")
SCOPES = ("read", "call", "approve", "manage", "metrics")
DAY = 86_400.0
COLUMNS = ("id", "name", "user", "role", "scopes", "expires")


@click.group(cls=CliGroup)
def tokens() -> None:
    """Add, list and revoke tokens of the HTTP server."""


@tokens.command()
@click.argument("user")
@click.option("--role", type=click.Choice([role.value for role in Role]), default="viewer", show_default=True)
@click.option(
    "--scope", "scopes", type=click.Choice(SCOPES), multiple=True, help="What it may do; default: the role's."
)
@click.option("--tools", help="The tools it sees, as in mcp.tools; default: all of the door's.")
@click.option(
    "--days", type=click.FloatRange(min=0, min_open=True), default=90, show_default=True, help="Its lifetime."
)
@click.option("--name", default="", help="What it is for.")
def add(user: str, role: str, scopes: tuple[str, ...], tools: str | None, days: float, name: str) -> int:
    """Make a token for USER and print it, this once. Running servers accept it within a second."""
    from toolreeve.core.toolset import read_toolset
    from toolreeve.record.credentials import TOKEN
    from toolreeve.serve.tokens import AccessScope, new_stored

    if not user.strip() or len(user) > 200:
        raise click.UsageError("USER must have 1 to 200 characters")
    chosen = tuple(word.strip() for word in (tools or "").split(",") if word.strip())
    read_toolset(chosen)
    secret = f"tr_{secrets.token_urlsafe(32)}"
    now = time.time()
    token = new_stored(
        secret,
        kind=TOKEN,
        user=user,
        role=Role(role),
        scopes=[AccessScope(each) for each in scopes],
        tools=chosen,
        name=name,
        now=now,
        expires=now + days * DAY,
    )
    asyncio.run(_with_table(lambda table: table.add(token)))
    if current().json:
        print_json({**token.to_dict(), "token": secret})
    else:
        print_text(secret)
        note(f"token {token.id} for {user}: {', '.join(token.scopes)}; expires {format_time(now + days * DAY)}")
        note("from now on, servers accept no request without a token or a console login")
    return ExitStatus.OK


@tokens.command("list")
def list_() -> int:
    """List the tokens that are valid, and the browsers that are logged in."""
    from toolreeve.record.credentials import LINK

    found = [each for each in asyncio.run(stored_credentials(current().configuration())) if each.kind != LINK]
    if current().json:
        print_json([{**each.to_dict(), "kind": each.kind} for each in found])
    else:
        print_table(current(), COLUMNS, [_row(each) for each in found])
    return ExitStatus.OK


@tokens.command()
@click.argument("number", metavar="ID")
def revoke(number: str) -> int:
    """Revoke a token, or end a browser's login. Running servers refuse it within a second."""
    if asyncio.run(_with_table(lambda table: table.revoke(number))) is None:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"no token {number!r:.100}; see `toolreeve tokens list`")
    note(f"revoked {number}")
    return ExitStatus.OK


@tokens.command()
@click.option("--url", help="The server's URL; default: that of the one that runs with this state.")
def link(url: str | None) -> int:
    """Print a link that opens the console of a running server, once, within 15 minutes."""
    from toolreeve.serve.login import new_link

    base = (url or _find_server()).rstrip("/")
    print_text(asyncio.run(_with_table(lambda table: new_link(table, time.time(), base))))
    return ExitStatus.OK


def _find_server() -> str:
    """The URL of the server that runs here. Raises ToolError(UPSTREAM) if there is none."""
    from toolreeve.core.version import VERSION
    from toolreeve.serve.running_server import find_running

    state = current().configuration().settings.state.dir
    running = find_running(Path(state))
    if running is None:
        why = f"no server runs with the state in {state}: start `toolreeve serve`, or name the server with --url"
        raise ToolError(ErrorCode.UPSTREAM, why)
    if running.version != VERSION:
        note(f"the server runs version {running.version}, this program is {VERSION}: restart the server")
    return running.url


def _row(token: "StoredCredential") -> tuple[str, ...]:
    name = token.name if token.kind == "token" else f"browser: {token.name[:40]}"
    expires = "never" if token.expires is None else format_time(token.expires)
    return token.id, name, token.user, token.role, " ".join(token.scopes), expires


async def _with_table(work: "Callable[[CredentialTable], Awaitable[T]]") -> T:
    from toolreeve.runtime.store import configured_store

    async with configured_store(current().configuration()) as store:
        return await work(store.credentials)


async def stored_credentials(configuration: "Configuration") -> "Sequence[StoredCredential]":
    """Those that are valid now; none if nothing was ever stored."""
    from toolreeve.runtime.store import configured_store

    store = configured_store(configuration)
    if not store.has_begun:
        return ()
    async with store:
        return await store.credentials.list(now=time.time())
