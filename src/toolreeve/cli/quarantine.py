"""`toolreeve quarantine`: list, show, release and delete quarantined files.

Only a person releases a file: after confirmation on a terminal, where its content is shown, or with `--yes`. Nothing
that runs in the sandbox can reach the quarantine.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliGroup, current, on_terminal
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.config.os_user import os_user_name
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.sandbox.integrity.quarantine import Quarantine, QuarantinedPath

YES = "Skip the confirmation; required without a terminal."
COLUMNS = ("id", "time", "kind", "path", "reason")
_LINES_SHOWN = 60
_BYTES_SHOWN = 8192


@click.group(cls=CliGroup, invoke_without_command=True)
@click.pass_context
def quarantine(context: click.Context) -> int:
    """List, show, release and delete quarantined files: what commands left for git, an editor, another agent or this
    runtime to obey."""
    if context.invoked_subcommand is not None:
        return ExitStatus.OK
    return _list()


@quarantine.command("list")
def list_all() -> int:
    """List the quarantined files, oldest first."""
    return _list()


def _list() -> int:
    found = _open().list()
    if current().json:
        print_json([_as_dict(held) for held in found])
    elif found:
        print_table(current(), COLUMNS, [tuple(_as_dict(held).values()) for held in found])
        if on_terminal():
            note("show one with `toolreeve quarantine show ID`, then `release ID` or `delete ID`")
    else:
        note("nothing is quarantined")
    return ExitStatus.OK


@quarantine.command()
@click.argument("name", metavar="ID")
def show(name: str) -> int:
    """Show a quarantined file: why it was quarantined, and its content."""
    found = _open()
    held = found.find(name)
    if held is None:
        return _unknown(name)
    if current().json:
        print_json(_as_dict(held) | {"content": found.content(held), "sha256": dict(held.sha256), "call": held.call})
    else:
        print_text("\n".join(_facts(found, held)))
    return ExitStatus.OK


@quarantine.command()
@click.argument("name", metavar="ID")
@click.option("--yes", is_flag=True, help=YES)
def release(name: str, *, yes: bool) -> int:
    """Show a quarantined file and, after confirmation, restore it. A file that replaced it is kept."""
    found = _open()
    held = found.find(name)
    if held is None:
        return _unknown(name)
    shown = "\n".join(_facts(found, held))
    if yes:
        note(shown)
    elif not asyncio.run(_confirm("Restore it, for the host to obey?", shown)):
        return ExitStatus.DENIED
    try:
        found.release(held)
    except OSError as problem:
        note(f"{one_line(held.path)}: not restored: {problem.strerror}")
        return ExitStatus.TOOL_ERROR
    return _finish(held, "released")


@quarantine.command()
@click.argument("name", metavar="ID")
@click.option("--yes", is_flag=True, help=YES)
def delete(name: str, *, yes: bool) -> int:
    """Show a quarantined file and, after confirmation, delete it permanently."""
    found = _open()
    held = found.find(name)
    if held is None:
        return _unknown(name)
    if not yes and not asyncio.run(_confirm("Delete it permanently?", "\n".join(_facts(found, held)))):
        return ExitStatus.DENIED
    found.delete(held)
    return _finish(held, "deleted")


def _open() -> "Quarantine":
    from toolreeve.config.guard_table import guard_table
    from toolreeve.sandbox.integrity.quarantine import Quarantine

    configuration = current().configuration()
    return Quarantine(str(Path(configuration.settings.state.dir) / "quarantine"), guard_table(configuration))


async def _confirm(question: str, shown: str) -> bool:
    from toolreeve.cli.confirm import confirm

    if await confirm(question, shown=shown):
        return True
    note("nothing was changed")
    return False


def _finish(held: "QuarantinedPath", outcome: str) -> int:
    asyncio.run(_record(held, outcome))
    if current().json:
        print_json(_as_dict(held) | {"outcome": outcome})
    else:
        print_text(f"{one_line(held.path)}: {outcome}")
    return ExitStatus.OK


async def _record(held: "QuarantinedPath", outcome: str) -> None:
    from toolreeve.cli.record import open_journal

    async with open_journal(current()) as (_, journal):
        body = {
            "quarantine": held.id,
            "outcome": outcome,
            "path": held.path,
            "sha256": dict(held.sha256),
            "by": f"{os_user_name()} via command line",
        }
        await journal.note("quarantine", body, call_id=held.call)


def _unknown(name: str) -> int:
    note(f"no quarantined file has the id {name!r}; `toolreeve quarantine list` shows all")
    return ExitStatus.NOT_FOUND


def _as_dict(held: "QuarantinedPath") -> dict[str, str]:
    from toolreeve.cli.record import format_time

    return {
        "id": held.id,
        "time": format_time(held.time),
        "kind": held.kind,
        "path": one_line(held.path),
        "reason": one_line(held.reason),
    }


def _facts(found: "Quarantine", held: "QuarantinedPath") -> Iterator[str]:
    facts = _as_dict(held)
    yield f"{facts['path']} ({facts['kind']})"
    yield f"  Why:   {facts['reason']}"
    yield f"  When:  {facts['time']}" + (f", by call {held.call}" if held.call else "")
    yield f"  Where: {one_line(found.content(held))}"
    if held.link is not None:
        yield f"  Link to: {one_line(held.link)}"
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
