"""`toolreeve trust`: lets the workspace's own tools and servers run.

Only a person may decide this, for the current state of the files. What will run is shown with the question, each item
on one line whatever it contains, and the answer counts only if it is still the same afterwards.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import note, print_json, print_text
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.config.project_code import ProjectCode


@click.command(cls=CliCommand)
@click.option("--revoke", is_flag=True, help="Stop trusting the folder; needs no confirmation.")
@click.option("--yes", is_flag=True, help="Skip the confirmation; required without a terminal.")
def trust(*, revoke: bool, yes: bool) -> int:
    """Show what the workspace would run and, after confirmation, trust it: the tool files and quality commands of its
    toolreeve.toml will run, and so will the MCP servers of that file and of .mcp.json.

    The trust ends when these files change, or a workspace file that they run.
    """
    from toolreeve.config.trust import TrustedFolders

    found = current().configuration()
    folders = TrustedFolders(Path(found.settings.state.dir))
    folder = found.project_file.parent
    if revoke:
        was_trusted = folders.revoke(folder)
        return _report(folder, trusted=False, text="no longer trusted" if was_trusted else "was not trusted")
    if found.code is None:
        raise click.UsageError(
            f"nothing to trust: {found.project_file} names no tool files, commands or servers, "
            "and there is no .mcp.json next to it"
        )
    if not _confirm(current(), found.code, yes=yes):
        return ExitStatus.DENIED
    folders.add(folder, found.code.digest)
    return _report(folder, trusted=True, text="trusted in its current state")


def _confirm(options: Options, code: "ProjectCode", *, yes: bool) -> bool:
    from toolreeve.cli.confirm import confirm

    would_run = _would_run(code)
    if yes:
        for line in would_run:
            note(line)
        return True
    items = "this in its" if len(would_run) == 1 else f"these {len(would_run)} in their"
    shown = "\n  ".join((f"{one_line(str(code.folder))}, once trusted:", *would_run))
    if not asyncio.run(confirm(f"Trust {items} current state?", shown=shown)):
        note("nothing was trusted")
        return False
    if _reload(options) != code:
        note("nothing was trusted: the files changed during the confirmation; review them and run this again")
        return False
    return True


def _would_run(code: "ProjectCode") -> list[str]:
    items = {
        "will run as code": code.files,
        "will run as a command": code.commands,
        "will be used as a server": code.servers,
    }
    return [one_line(f"{what}: {each}") for what, values in items.items() for each in values]


def _reload(options: Options) -> "ProjectCode | None":
    from toolreeve.config import load

    return load({"workspace.dir": options.workspace, "policy.mode": options.mode}, origin="flag").code


def _report(folder: Path, *, trusted: bool, text: str) -> int:
    if current().json:
        print_json({"folder": str(folder), "trusted": trusted})
    else:
        print_text(f"{folder}: {text}")
    return ExitStatus.OK
