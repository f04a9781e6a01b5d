"""`toolreeve servers`: status, tools, logins and accepted changes of MCP servers.

What servers say about themselves may be meant to deceive: it is shown with control and hidden characters spelled out.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import count, live_line, note, print_json, print_table, print_text
from toolreeve.cli.suggestions import complete_servers
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
    """List the MCP servers with their status; show one, test it, log in or out, or accept its changes."""
    if context.invoked_subcommand is not None:
        return ExitStatus.OK
    connected, _ = asyncio.run(_connect(current(), current().configuration().mcp_servers))
    found = [*connected, *_left_out(current())]
    if current().json:
        print_json([status.to_dict() for status in found])
    elif found:
        print_table(current(), COLUMNS, list(map(_row, found)))
    else:
        note("no MCP servers configured: add [mcp_servers.NAME] to toolreeve.toml, or run `toolreeve adopt`")
    return ExitStatus.OK


@servers.command("list")
@click.pass_context
def list_(context: click.Context) -> int:
    """List the servers with their status."""
    status: int = context.invoke(servers)
    return status


@servers.command()
@click.argument("name", shell_complete=complete_servers)
def show(name: str) -> int:
    """Show a server, its tools and their problems."""
    spec = _find(current(), name)
    (status,), tools = asyncio.run(_connect(current(), (spec,)))
    changes = asyncio.run(_changes(current(), spec)) if status.changed else ()
    if current().json:
        changed = {change.tool: _difference(change) for change in changes}
        print_json(status.to_dict() | {"tools": [_tool(each, status) for each in tools], "differences": changed})
    else:
        print_text("\n".join(_facts(status)))
        _show_changes(changes)
        rows = [tuple(map(one_line, _tool(each, status).values())) for each in tools]
        if rows:
            print_table(current(), ("tool", "danger", "state", "description"), rows)
    return ExitStatus.OK


@servers.command()
@click.argument("name", shell_complete=complete_servers)
def test(name: str) -> int:
    """Connect to a server once, and report whether that works."""
    (status,), _ = asyncio.run(_connect(current(), (_find(current(), name),)))
    if current().json:
        print_json(status.to_dict())
    else:
        print_text("\n".join(_facts(status)))
    return ExitStatus.OK if status.state == "up" else ExitStatus.UNAVAILABLE


@servers.command()
@click.argument("name", shell_complete=complete_servers)
@click.argument("tools", nargs=-1)
@click.option("--yes", is_flag=True, help="Skip the confirmation; required without a terminal.")
def accept(name: str, tools: Sequence[str], *, yes: bool) -> int:
    """Show how a server changed its tools and, after confirmation, accept the changes. Without TOOLS, all of them."""
    return asyncio.run(_accept(current(), _find(current(), name), tools, yes=yes))


@servers.command()
@click.argument("name", shell_complete=complete_servers)
def login(name: str) -> int:
    """Log in to a remote server that requires it."""
    from toolreeve.cli.login import log_in

    return asyncio.run(log_in(current(), _find(current(), name)))


@servers.command()
@click.argument("name", shell_complete=complete_servers)
def logout(name: str) -> int:
    """Delete the login to a server, and revoke it if the server supports that."""
    from toolreeve.cli.login import log_out

    return asyncio.run(log_out(current(), _find(current(), name)))


def _find(options: Options, name: str) -> "ServerSpec":
    from toolreeve.core.suggest import did_you_mean, find_similar

    known = {spec.name: spec for spec in options.configuration().mcp_servers}
    if name not in known:
        left_out = {each.name: each for each in _left_out(options)}
        if name in left_out:
            raise ConfigError(f"{name} is not configured: {left_out[name].problem}", source=left_out[name].source)
        hint = did_you_mean(find_similar(name, [*known, *left_out], limit=1))
        hint = hint or f"configured: {', '.join(known) or 'none'}"
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"no MCP server is called {name!r}; {hint}")
    return known[name]


def _left_out(options: Options) -> "Iterator[ServerStatus]":
    """The servers that are named in a file but cannot be used as written."""
    from toolreeve.config.mcp_servers.reader import LeftOut
    from toolreeve.upstream.status import ServerStatus

    found = options.configuration()
    known = {spec.name for spec in found.mcp_servers}
    for problem in found.mcp_problems:
        if isinstance(problem, LeftOut) and problem.server not in known:
            reason = f"{problem.key}: {problem.problem}" + (f" ({problem.fix})" if problem.fix else "")
            yield ServerStatus(name=problem.server, source=problem.place, state=LEFT_OUT, problem=reason)


def _runtime(options: Options, specs: "Sequence[ServerSpec]") -> "Toolreeve":
    """A runtime with these servers only."""
    from toolreeve.runtime.toolreeve import Toolreeve

    return Toolreeve(settings=replace(options.configuration(), mcp_servers=tuple(specs)), origin="cli")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """The output itself shows which servers failed and which tools changed."""
    loggers = [logging.getLogger(f"toolreeve.{name}") for name in ("upstream.tools.registration", "runtime.toolreeve")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


async def _connect(options: Options, specs: "Sequence[ServerSpec]") -> "tuple[list[ServerStatus], list[ToolSpec]]":
    names = ", ".join(spec.name for spec in specs)
    with _without_warnings(), live_line(f"connecting to {names}" if names else ""):
        async with _runtime(options, specs) as runtime:
            tools = [bound.spec for bound in runtime.tools.list() if bound.spec.server is not None]
            await runtime.fleet.resources()  # two servers may offer the same one, which their status then shows
            return runtime.fleet.status(), tools


def _row(status: "ServerStatus") -> tuple[str, ...]:
    see = f" (see `toolreeve servers show {status.name}`)"
    changes = [f"changed: {tool}{see}" for tool in status.changed]
    problems = [one_line(each) for each in (status.problem, *changes, *status.problems) if each]
    shown = problems[0] if problems else ""
    if len(problems) > 1:
        shown += f" (and {len(problems) - 1} more)"
    return one_line(status.name), status.kind, status.state, str(status.tools), status.era or "", shown


def _facts(status: "ServerStatus") -> Iterator[str]:
    yield f"{status.name}: {status.state}{' (trusted)' if status.trusted else ''}"
    yield f"  target:     {one_line(status.place)} ({status.kind})"
    yield f"  configured: {one_line(status.source)}"
    if status.era is not None:
        known = " ".join(str(status.info[key]) for key in ("name", "version") if status.info.get(key))
        yield f"  reports:    {one_line(known) or 'no name'}, protocol {status.era}, {count(status.tools, 'tool')}"
    if status.state == "off" and not status.problem:
        yield "  problem:    turned off by `enabled = false`"
    for problem in filter(None, (status.problem, *status.problems)):
        yield f"  problem:    {one_line(problem)}"
    for tool in status.changed:
        yield f"  changed:    {one_line(tool)}; accept the change with `toolreeve servers accept {status.name}`"


def _tool(spec: "ToolSpec", status: "ServerStatus") -> dict[str, str]:
    from toolreeve.upstream.tools.names import tool_name

    own = tool_name("", (spec.declared or {}).get("name", spec.name))
    return {
        "name": spec.name,
        "danger": spec.danger.value,
        "state": "changed" if own in status.changed else "ok",
        "description": spec.description.strip().split("\n", 1)[0],
    }


async def _accept(options: Options, spec: "ServerSpec", tools: Sequence[str], *, yes: bool) -> int:
    home = _home(spec)
    async with _runtime(options, ()) as runtime:
        pending = _select((await runtime.internals.pins.changed(spec.name)).get(home, ()), spec, tools)
        if not pending:
            note(f"no changes to accept; `toolreeve servers test {spec.name}` checks for changes")
            return ExitStatus.OK
        _show_changes(pending)
        if not yes and not await _confirm(spec.name, pending):
            note("nothing was accepted")
            return ExitStatus.DENIED
        return _report_accepted(home, pending, await runtime.internals.pins.accept(home, pending))


def _select(changes: "Sequence[ToolChanged]", spec: "ServerSpec", tools: Sequence[str]) -> "Sequence[ToolChanged]":
    """The changes of these tools, by the server's name for them or by ours; all of them if none is named."""
    from toolreeve.upstream.pool import prefix_of

    if not tools:
        return changes
    wanted = {tool.removeprefix(f"{prefix_of(spec)}__") for tool in tools}
    missing = sorted(wanted - {change.tool for change in changes})
    if missing:
        pending = ", ".join(one_line(change.tool) for change in changes) or "none"
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"no change of {missing[0]!r} to accept; changed tools: {pending}")
    return [change for change in changes if change.tool in wanted]


async def _confirm(server: str, changes: "Sequence[ToolChanged]") -> bool:
    """Raises UsageError without a terminal: nobody may have seen what was only printed."""
    from toolreeve.cli.confirm import confirm

    tools = f"the change of {one_line(changes[0].tool)!r}" if len(changes) == 1 else f"these {len(changes)} changes"
    return await confirm(f"Accept {tools} by {server}?")


async def _changes(options: Options, spec: "ServerSpec") -> "Sequence[ToolChanged]":
    async with _runtime(options, ()) as runtime:
        return (await runtime.internals.pins.changed(spec.name)).get(_home(spec), ())


def _home(spec: "ServerSpec") -> "PinOwner":
    from toolreeve.upstream.tools.pins import PinOwner

    return PinOwner(server=spec.name, place=spec.place)


def _show_changes(changes: "Sequence[ToolChanged]") -> None:
    for change in changes:
        note(f"{visible(change.tool)} changed (- before, + now)\n{_difference(change)}")


def _difference(change: "ToolChanged") -> str:
    from toolreeve.upstream.tools.diff import difference

    return difference(change, lines=1000)


def _report_accepted(home: "PinOwner", shown: "Sequence[ToolChanged]", accepted: Sequence[str]) -> int:
    left = [change.tool for change in shown if change.tool not in accepted]
    if current().json:
        print_json({"server": home.server, "accepted": list(accepted), "changed_again": left})
    else:
        print_text(f"accepted: {', '.join(map(one_line, accepted)) or 'nothing'}")
    if left:
        note(f"not accepted, because changed again in the meantime: {', '.join(map(one_line, left))}")
    return ExitStatus.TOOL_ERROR if left else ExitStatus.OK
