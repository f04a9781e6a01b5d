"""`toolreeve quarantine`: list, show, release and delete what commands left for the host to obey.

Only a person releases: asked on a terminal, where it is shown what comes back, unless they say `--yes`. Nothing that
runs in the sandbox can reach the quarantine.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliGroup, current, on_terminal
from toolreeve.cli.output import note, say, say_json, say_table
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.sandbox.integrity.quarantine import Quarantine, QuarantinedPath

YES = "Do not ask; needed where there is no terminal to ask on."
COLUMNS = ("id", "time", "kind", "path", "reason")
_LINES_SHOWN = 60
_BYTES_SHOWN = 8192


@click.group(cls=CliGroup, invoke_without_command=True)
@click.pass_context
def quarantine(context: click.Context) -> int:
    """List what commands left for git, an editor, another agent or this runtime to obey, and what was put aside for it;
    show one, bring it back, or delete it."""
    if context.invoked_subcommand is not None:
        return ExitStatus.OK
    return _list()


@quarantine.command("list")
def list_all() -> int:
    """List what is quarantined, oldest first."""
    return _list()


def _list() -> int:
    found = _open().list()
    if current().json:
        say_json([_told(held) for held in found])
    elif found:
        say_table(current(), COLUMNS, [tuple(str(_told(held)[column]) for column in COLUMNS) for held in found])
        if on_terminal():
            note("look at one with `toolreeve quarantine show ID`; then `release ID` or `delete ID`")
    else:
        note("nothing is quarantined")
    return ExitStatus.OK


@quarantine.command()
@click.argument("name", metavar="ID")
def show(name: str) -> int:
    """Show what was put aside, why, and where it lies."""
    found = _open()
    held = found.find(name)
    if held is None:
        return _unknown(name)
    if current().json:
        say_json(_told(held) | {"content": found.content(held), "sha256": dict(held.sha256), "call": held.call})
    else:
        say("\n".join(_facts(found, held)))
    return ExitStatus.OK


@quarantine.command()
@click.argument("name", metavar="ID")
@click.option("--yes", is_flag=True, help=YES)
def release(name: str, *, yes: bool) -> int:
    """Show what was put aside and, if you say yes, bring it back to where it was. What stands there now is kept."""
    found = _open()
    held = found.find(name)
    if held is None:
        return _unknown(name)
    shown = "\n".join(_facts(found, held))
    if yes:
        note(shown)
    elif not asyncio.run(_agreed("Bring it back, for the host to obey?", shown)):
        return ExitStatus.DENIED
    try:
        found.release(held)
    except OSError as problem:
        note(f"{one_line(held.path)}: nothing was brought back: {problem.strerror}")
        return ExitStatus.TOOL_ERROR
    return _done(held, "released", "is back")


@quarantine.command()
@click.argument("name", metavar="ID")
@click.option("--yes", is_flag=True, help=YES)
def delete(name: str, *, yes: bool) -> int:
    """Show what was put aside and, if you say yes, delete it for good."""
    found = _open()
    held = found.find(name)
    if held is None:
        return _unknown(name)
    if not yes and not asyncio.run(_agreed("Delete it for good?", "\n".join(_facts(found, held)))):
        return ExitStatus.DENIED
    found.delete(held)
    return _done(held, "deleted", "is deleted")


def _open() -> "Quarantine":
    from toolreeve.config.guard_table import guard_table
    from toolreeve.sandbox.integrity.quarantine import Quarantine

    configuration = current().configuration()
    return Quarantine(str(Path(configuration.settings.state.dir) / "quarantine"), guard_table(configuration))


async def _agreed(question: str, shown: str) -> bool:
    from toolreeve.cli.confirm import confirmed

    if await confirmed(question, shown=shown):
        return True
    note("nothing was changed")
    return False


def _done(held: "QuarantinedPath", outcome: str, text: str) -> int:
    asyncio.run(_record(held, outcome))
    if current().json:
        say_json(_told(held) | {"outcome": outcome})
    else:
        say(f"{one_line(held.path)} {text}")
    return ExitStatus.OK


async def _record(held: "QuarantinedPath", outcome: str) -> None:
    from toolreeve.cli.approvals import me
    from toolreeve.config.xdg import DATABASE
    from toolreeve.core.secrets.redactor import Redactor
    from toolreeve.record.journal import Journal
    from toolreeve.record.store import Store

    configuration = current().configuration()
    store = Store(Path(configuration.settings.state.dir) / DATABASE)
    journal = Journal(store, Redactor(configuration.secrets), time.time)
    await store.start()
    try:
        await journal.start()
        body = {"quarantine": held.id, "outcome": outcome, "path": held.path, "sha256": dict(held.sha256)}
        await journal.note("quarantine", body | {"by": f"{me()} via command line"}, call_id=held.call)
        await journal.stop()
    finally:
        await store.close()


def _unknown(name: str) -> int:
    note(f"nothing is quarantined under the id {name!r}; `toolreeve quarantine list` shows what is")
    return ExitStatus.NOT_FOUND


def _told(held: "QuarantinedPath") -> dict[str, str]:
    at = datetime.fromtimestamp(held.time, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"id": held.id, "time": at, "kind": held.kind, "path": one_line(held.path), "reason": one_line(held.reason)}


def _facts(found: "Quarantine", held: "QuarantinedPath") -> Iterator[str]:
    told = _told(held)
    yield f"{told['path']} ({told['kind']})"
    yield f"  Why:   {told['reason']}"
    yield f"  When:  {told['time']}" + (f", by call {held.call}" if held.call else "")
    yield f"  Where: {one_line(found.content(held))}"
    if held.link is not None:
        yield f"  Leads to: {one_line(held.link)}"
    for name, digest in held.sha256.items():
        yield f"  sha256 {digest}  {one_line(name)}"
    if held.kind == "file":
        yield from _content(found.content(held))


def _content(path: str) -> Iterator[str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_BYTES_SHOWN + 1)
    lines = data[:_BYTES_SHOWN].decode("utf-8", "replace").splitlines()
    yield from (f"  | {one_line(line)}" for line in lines[:_LINES_SHOWN])
    if len(lines) > _LINES_SHOWN or len(data) > _BYTES_SHOWN:
        yield "  | …"
