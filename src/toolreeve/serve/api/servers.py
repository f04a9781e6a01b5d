"""Endpoints of MCP servers: state, log, restart, pins and logins.

What servers say about themselves may be meant to deceive: differences are shown with hidden characters spelled out.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.core.errors import ErrorCode
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints
from toolreeve.serve.api.problems import Problem, not_found
from toolreeve.serve.tokens import AccessScope
from toolreeve.upstream.status import ServerStatus
from toolreeve.upstream.tools.diff import difference
from toolreeve.upstream.tools.pins import PinOwner, ToolChanged, digest
from toolreeve.upstream.transports.transport import ServerUnavailable

LOGIN_URL_SECONDS = 30.0
servers = Endpoints("servers")


class ServerRow(TypedDict):
    """`word` says in a few words what a person should know first."""

    name: str
    transport: str
    target: str
    file: str
    state: str
    word: str
    trust: bool
    era: str | None
    tools: int
    changed: list[str]
    problem: str
    problems: list[str]


class PinRow(TypedDict):
    """`digest` identifies the offered definition: accepting names it."""

    tool: str
    old: dict[str, Any]
    new: dict[str, Any]
    difference: str
    digest: str


class ServerDetail(ServerRow):
    info: dict[str, Any]
    pins: list[PinRow]
    log: list[str]


class ServerList(TypedDict):
    servers: list[ServerRow]


class ServerLog(TypedDict):
    lines: list[str]


class AcceptBody(Body):
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Of the definition that was shown.")]


class AcceptedPin(TypedDict):
    server: str
    accepted: str


class ServerLogin(TypedDict):
    """`url` is where the user logs in; empty if no login is required."""

    server: str
    url: str


@servers.get("/servers")
async def list_servers(request: ApiRequest) -> ServerList:
    """List the MCP servers with their states."""
    return {"servers": [_row(each) for each in request.services.reeve.fleet.status()]}


@servers.get("/servers/{name}")
async def show_server(request: ApiRequest, name: str) -> ServerDetail:
    """Show a server, and how its tools differ from their pins."""
    status = _find(request, name)
    return {
        **_row(status),
        "info": dict(status.info),
        "pins": [_pin(each) for each in await _changes(request, status)],
        "log": _log(request, name),
    }


@servers.get("/servers/{name}/log", AccessScope.CALL)
async def show_server_log(request: ApiRequest, name: str) -> ServerLog:
    """The last lines that a local server printed on its error stream."""
    _find(request, name)
    return {"lines": _log(request, name)}


@servers.post("/servers/{name}/restart", AccessScope.MANAGE, returns=ServerRow)
async def restart_server(request: ApiRequest, name: str) -> ServerRow:
    """Close the connection and connect again; a local server is started anew."""
    status = _find(request, name)
    if status.state == "off":
        raise Problem(409, f"{name} is turned off: {status.problem or 'enabled = false'}", code=ErrorCode.UPSTREAM)
    await request.services.reeve.fleet.upstream(name).supervisor.restart()
    await request.services.reeve.internals.journal.note(
        "server", {"server": name, "restarted_by": request.credential.principal.user}
    )
    return _row(_find(request, name))


@servers.post("/servers/{name}/pins/{tool}/accept", AccessScope.MANAGE)
async def accept_pin(request: ApiRequest, name: str, tool: str, body: AcceptBody) -> AcceptedPin:
    """Accept a changed definition, exactly as it was shown."""
    status = _find(request, name)
    offered = [each for each in await _changes(request, status) if each.tool == tool]
    if not offered:
        raise not_found(f"{name} has no change of {tool!r:.100} to accept")
    owner = PinOwner(server=status.name, place=status.place)
    if digest(offered[0].offered).hex() != body.digest or not await request.services.reeve.internals.pins.accept(
        owner, offered
    ):
        detail = f"{tool!r:.100} has changed again since it was shown; look at the difference anew"
        raise Problem(409, detail, code=ErrorCode.TOOL_CHANGED)
    return {"server": name, "accepted": tool}


@servers.post("/servers/{name}/login", AccessScope.MANAGE, returns=ServerLogin)
async def log_in_to_server(request: ApiRequest, name: str) -> ServerLogin:
    """Start a login to a remote server; the user continues at `url` on the machine of this server."""
    if _find(request, name).kind == "stdio":
        raise Problem(409, f"{name!r} runs locally (stdio) and requires no login")
    shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def authorize(url: str) -> None:
        if not shown.done():
            shown.set_result(url)

    task = asyncio.create_task(request.services.reeve.internals.log_in(name, authorize))
    request.services.tasks.add(task)
    task.add_done_callback(request.services.tasks.discard)
    waiting: set[asyncio.Future[Any]] = {task, shown}
    await asyncio.wait(waiting, timeout=LOGIN_URL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if shown.done():
        return {"server": name, "url": shown.result()}
    try:
        task.cancel()
        await task
    except (ServerUnavailable, asyncio.CancelledError) as problem:
        raise Problem(502, f"{name}: {problem or 'the server did not respond'}", code=ErrorCode.UPSTREAM) from None
    return {"server": name, "url": ""}


def _find(request: ApiRequest, name: str) -> ServerStatus:
    """Raises Problem(404)."""
    for status in request.services.reeve.fleet.status():
        if status.name == name:
            return status
    known = list(request.services.reeve.fleet.names)
    raise not_found(f"no MCP server is called {name!r:.100}; configured: {', '.join(known) or 'none'}")


async def _changes(request: ApiRequest, status: ServerStatus) -> Sequence[ToolChanged]:
    found = await request.services.reeve.internals.pins.changed(status.name)
    return found.get(PinOwner(server=status.name, place=status.place), ())


def _log(request: ApiRequest, name: str) -> list[str]:
    if AccessScope.CALL not in request.credential.scopes:
        return []
    return request.services.reeve.fleet.upstream(name).log_lines()


def _pin(change: ToolChanged) -> PinRow:
    return {
        "tool": change.tool,
        "old": dict(change.pinned),
        "new": dict(change.offered),
        "difference": difference(change, lines=1000),
        "digest": digest(change.offered).hex(),
    }


def _row(status: ServerStatus) -> ServerRow:
    return {
        "name": status.name,
        "transport": status.kind,
        "target": status.place,
        "file": status.source,
        "state": status.state,
        "word": _word(status),
        "trust": status.trusted,
        "era": status.era,
        "tools": status.tools,
        "changed": list(status.changed),
        "problem": status.problem,
        "problems": list(status.problems),
    }


_WORDS: Mapping[str, str] = {
    "connecting": "connecting",
    "up": "connected",
    "away": "reconnecting",
    "failed": "not available",
    "off": "turned off",
}


def _word(status: ServerStatus) -> str:
    if status.changed:
        return f"{len(status.changed)} tool{'' if len(status.changed) == 1 else 's'} changed"
    if "log in" in status.problem or "login" in status.problem:
        return "login needed"
    return _WORDS.get(status.state, status.state)
