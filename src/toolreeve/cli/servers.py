"""Which MCP servers are there, how are they, and what of them was accepted?

What servers say about themselves may be made to deceive: it is shown with everything spelled out that hides or steers.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import note, say, say_json, say_table
from toolreeve.core.errors import ConfigError, ErrorCode, ExitStatus, ToolError
from toolreeve.core.visible import one_line, visible

if TYPE_CHECKING:
    from toolreeve.core.tool import ToolSpec
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.upstream.server_spec import ServerSpec
    from toolreeve.upstream.status import ServerStatus
    from toolreeve.upstream.tools.pins import PinOwner, ToolChanged

LEFT_OUT = "not configured"
COLUMNS = ("server", "kind", "state", "tools", "era", "problems")


@click.group(cls=CliGroup, invoke_without_command=True)
@click.pass_context
def servers(context: click.Context) -> int:
    """List the MCP servers and how they are; show one, test it, log in to it or out, or accept what it changed."""
    if context.invoked_subcommand is not None:
        return ExitStatus.OK
    found = [*asyncio.run(_look(current(), current().configuration().mcp_servers))[0], *_left_out(current())]
    if current().json:
        say_json([status.to_dict() for status in found])
    elif found:
        say_table(current(), COLUMNS, list(map(_row, found)))
    else:
        note("no server is configured: `[mcp_servers.NAME]` in toolreeve.toml, or `toolreeve adopt`")
    return ExitStatus.OK


@servers.command("list")
@click.pass_context
def list_(context: click.Context) -> int:
    """List the servers and how they are."""
    status: int = context.invoke(servers)
    return status


@servers.command()
@click.argument("name")
def show(name: str) -> int:
    """Show a server, its tools and what is wrong with them."""
    spec = _find(current(), name)
    (status,), tools = asyncio.run(_look(current(), (spec,)))
    changes = asyncio.run(_changes(current(), spec)) if status.changed else ()
    if current().json:
        changed = {change.tool: _difference(change) for change in changes}
        say_json(status.to_dict() | {"tools": [_tool(each, status) for each in tools], "differences": changed})
    else:
        say("\n".join(_facts(status)))
        _show_changes(changes)
        rows = [tuple(map(one_line, _tool(each, status).values())) for each in tools]
        if rows:
            say_table(current(), ("tool", "danger", "state", "what it says it does"), rows)
    return ExitStatus.OK


@servers.command()
@click.argument("name")
def test(name: str) -> int:
    """Connect to a server once, and tell whether that works."""
    (status,), _ = asyncio.run(_look(current(), (_find(current(), name),)))
    if current().json:
        say_json(status.to_dict())
    else:
        say("\n".join(_facts(status)))
    return ExitStatus.OK if status.state == "up" else ExitStatus.UNAVAILABLE


@servers.command()
@click.argument("name")
@click.argument("tools", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal to ask on.")
def accept(name: str, tools: Sequence[str], *, yes: bool) -> int:
    """Show what a server changed about its tools, and use them as they are now. Without TOOLS, all of them."""
    return asyncio.run(_accept(current(), _find(current(), name), tools, yes=yes))


@servers.command()
@click.argument("name")
def login(name: str) -> int:
    """Log in to a server on the web that asks for it."""
    from toolreeve.cli.login import log_in

    return asyncio.run(log_in(current(), _find(current(), name)))


@servers.command()
@click.argument("name")
def logout(name: str) -> int:
    """Forget the login to a server, and have it revoked where that can be done."""
    from toolreeve.cli.login import log_out

    return asyncio.run(log_out(current(), _find(current(), name)))


def _find(invocation: Options, name: str) -> "ServerSpec":
    from toolreeve.core.suggest import did_you_mean, find_similar

    known = {spec.name: spec for spec in invocation.configuration().mcp_servers}
    if name not in known:
        left_out = {each.name: each for each in _left_out(invocation)}
        if name in left_out:
            raise ConfigError(f"{name} is not configured: {left_out[name].problem}", source=left_out[name].source)
        hint = did_you_mean(find_similar(name, [*known, *left_out], limit=1))
        hint = hint or f"configured are: {', '.join(known) or 'none'}"
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"no MCP server is called {name!r}; {hint}")
    return known[name]


def _left_out(invocation: Options) -> "Iterator[ServerStatus]":
    """Those that are written down and cannot be used as they stand there."""
    from toolreeve.config.mcp_servers.reader import LeftOut
    from toolreeve.upstream.status import ServerStatus

    found = invocation.configuration()
    known = {spec.name for spec in found.mcp_servers}
    for problem in found.mcp_problems:
        if isinstance(problem, LeftOut) and problem.server not in known:
            reason = f"{problem.key}: {problem.problem}" + (f" ({problem.fix})" if problem.fix else "")
            yield ServerStatus(name=problem.server, source=problem.place, state=LEFT_OUT, problem=reason)


def _runtime(invocation: Options, specs: "Sequence[ServerSpec]") -> "Toolreeve":
    """With these servers and no others."""
    from toolreeve.runtime.toolreeve import Toolreeve

    return Toolreeve(settings=replace(invocation.configuration(), mcp_servers=tuple(specs)), origin="cli")


@contextmanager
def _unnoticed() -> Iterator[None]:
    """Without the notice that a tool changed: what is shown says so itself."""
    notices = logging.getLogger("toolreeve.upstream.tools.registration")
    before = notices.level
    notices.setLevel(logging.ERROR)
    try:
        yield
    finally:
        notices.setLevel(before)


async def _look(invocation: Options, specs: "Sequence[ServerSpec]") -> "tuple[list[ServerStatus], list[ToolSpec]]":
    with _unnoticed():
        return await _connect(invocation, specs)


async def _connect(invocation: Options, specs: "Sequence[ServerSpec]") -> "tuple[list[ServerStatus], list[ToolSpec]]":
    async with _runtime(invocation, specs) as runtime:
        tools = [bound.spec for bound in runtime.tools.list() if bound.spec.server is not None]
        await runtime.fleet.resources()  # two servers may have the same, which their status then says
        return runtime.fleet.status(), tools


def _row(status: "ServerStatus") -> tuple[str, ...]:
    see = f" (see `toolreeve servers show {status.name}`)"
    told = [status.problem, *(f"changed: {tool}{see}" for tool in status.changed), *status.problems]
    problems = [one_line(each) for each in told if each]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    shown = problems[0] + more if problems else ""
    return one_line(status.name), status.kind, status.state, str(status.tools), status.era or "", shown


def _facts(status: "ServerStatus") -> Iterator[str]:
    yield f"{status.name}: {status.state}{' (trusted)' if status.trusted else ''}"
    yield f"  leads to:   {one_line(status.place)} ({status.kind})"
    yield f"  configured: {one_line(status.source)}"
    if status.era is not None:
        known = " ".join(str(status.info[key]) for key in ("name", "version") if status.info.get(key))
        tools = "1 tool" if status.tools == 1 else f"{status.tools} tools"
        yield f"  says it is: {one_line(known) or 'nothing'}, speaks {status.era}, {tools}"
    if status.state == "off" and not status.problem:
        yield "  problem:    it is turned off by `enabled = false`"
    for problem in filter(None, (status.problem, *status.problems)):
        yield f"  problem:    {one_line(problem)}"
    for tool in status.changed:
        yield f"  changed:    {one_line(tool)}; use it as it is now with `toolreeve servers accept {status.name}`"


def _tool(spec: "ToolSpec", status: "ServerStatus") -> dict[str, str]:
    from toolreeve.upstream.tools.names import tool_name

    own = tool_name("", (spec.declared or {}).get("name", spec.name))
    return {
        "name": spec.name,
        "danger": spec.danger.value,
        "state": "changed" if own in status.changed else "ok",
        "description": spec.description.strip().split("\n", 1)[0],
    }


async def _accept(invocation: Options, spec: "ServerSpec", tools: Sequence[str], *, yes: bool) -> int:
    home = _home(spec)
    async with _runtime(invocation, ()) as runtime:
        waiting = _meant((await runtime.pins.changed(spec.name)).get(home, ()), spec, tools)
        if not waiting:
            note(f"nothing waits to be accepted; `toolreeve servers test {spec.name}` looks whether something changed")
            return ExitStatus.OK
        _show_changes(waiting)
        if not yes and not await _confirmed(spec.name, waiting):
            note("nothing was accepted")
            return ExitStatus.DENIED
        return _accepted(home, waiting, await runtime.pins.accept(home, waiting))


def _meant(changes: "Sequence[ToolChanged]", spec: "ServerSpec", tools: Sequence[str]) -> "Sequence[ToolChanged]":
    """The changes of these tools, by the server's name for them or by ours; all of them, if none is named."""
    from toolreeve.upstream.pool import prefix_of

    wanted = {tool.removeprefix(f"{prefix_of(spec)}__") for tool in tools}
    if missing := sorted(wanted - {change.tool for change in changes}):
        waiting = ", ".join(one_line(change.tool) for change in changes) or "nothing"
        raise ToolError(
            ErrorCode.TOOL_NOT_FOUND, f"no change of {missing[0]!r} waits to be accepted; what waits: {waiting}"
        )
    return [change for change in changes if not tools or change.tool in wanted]


async def _confirmed(server: str, changes: "Sequence[ToolChanged]") -> bool:
    """Raises UsageError where nobody can be asked: what was only printed has been seen by nobody."""
    from toolreeve.cli.confirm import confirmed

    tools = f"the tool {one_line(changes[0].tool)!r}" if len(changes) == 1 else f"these {len(changes)} tools"
    question = f"Use {tools} of {server} as offered now?"
    return await confirmed(question)


async def _changes(invocation: Options, spec: "ServerSpec") -> "Sequence[ToolChanged]":
    async with _runtime(invocation, ()) as runtime:
        return (await runtime.pins.changed(spec.name)).get(_home(spec), ())


def _home(spec: "ServerSpec") -> "PinOwner":
    from toolreeve.upstream.tools.pins import PinOwner

    return PinOwner(server=spec.name, place=spec.place)


def _show_changes(changes: "Sequence[ToolChanged]") -> None:
    for change in changes:
        note(f"{visible(change.tool)} changed (- as it was, + as offered now)\n{_difference(change)}")


def _difference(change: "ToolChanged") -> str:
    from toolreeve.upstream.tools.diff import difference

    return difference(change, lines=1000)


def _accepted(home: "PinOwner", asked: "Sequence[ToolChanged]", accepted: Sequence[str]) -> int:
    left = [change.tool for change in asked if change.tool not in accepted]
    if current().json:
        say_json({"server": home.server, "accepted": list(accepted), "changed_again": left})
    else:
        say(f"accepted: {', '.join(map(one_line, accepted)) or 'nothing'}")
    if left:
        note(f"changed again while it was shown, and not accepted: {', '.join(map(one_line, left))}")
    return ExitStatus.TOOL_ERROR if left else ExitStatus.OK
