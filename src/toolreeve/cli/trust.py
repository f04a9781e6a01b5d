"""May the workspace's own tools run? Only a person says so, here, for the files as they are now.

What will run is shown where the answer is given, each thing in a line of its own whatever it holds, and counts only if
it is still the same when the answer comes.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import note, say, say_json
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.config.project_code import ProjectCode


@click.command(cls=CliCommand)
@click.option("--revoke", is_flag=True, help="Stop trusting the folder; nobody is asked.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal to ask on.")
def trust(*, revoke: bool, yes: bool) -> int:
    """Show what the workspace would run and, if you say yes, trust it: what its toolreeve.toml names as tool files and
    as commands of the quality tools will run, and so will the MCP servers of that file and of .mcp.json.

    A change of these files, or of a file of the workspace that they name to be run, ends the trust.
    """
    from toolreeve.config.trust import TrustedFolders

    found = current().configuration()
    folders = TrustedFolders(Path(found.settings.state.dir))
    folder = found.project_file.parent
    if revoke:
        known = folders.revoke(folder)
        return _tell(folder, trusted=False, text="no longer trusted" if known else "was not trusted")
    if found.code is None:
        raise click.UsageError(
            f"there is nothing to trust: {found.project_file} names no tool files, no commands and no servers, "
            "and there is no .mcp.json beside it"
        )
    if not _agreed(current(), found.code, yes=yes):
        return ExitStatus.DENIED
    folders.add(folder, found.code.digest)
    return _tell(folder, trusted=True, text="trusted as it is now")


def _agreed(invocation: Options, code: "ProjectCode", *, yes: bool) -> bool:
    from toolreeve.cli.confirm import confirmed

    would_run = _would_run(code)
    if yes:
        for line in would_run:
            note(line)
        return True
    these = "this run as it is" if len(would_run) == 1 else f"these {len(would_run)} run as they are"
    shown = "\n  ".join((f"{one_line(str(code.folder))}, once it is trusted:", *would_run))
    if not asyncio.run(confirmed(f"Let {these} now?", shown=shown)):
        note("nothing was trusted")
        return False
    if _found_again(invocation) != code:
        note("nothing was trusted: the files changed while you were asked; look at them, and run this again")
        return False
    return True


def _would_run(code: "ProjectCode") -> list[str]:
    said = {
        "will run as code": code.files,
        "will be run": code.commands,
        "will be used as a server": code.servers,
    }
    return [one_line(f"{what}: {each}") for what, those in said.items() for each in those]


def _found_again(invocation: Options) -> "ProjectCode | None":
    from toolreeve.config import load

    return load({"workspace.dir": invocation.workspace, "policy.mode": invocation.mode}, origin="flag").code


def _tell(folder: Path, *, trusted: bool, text: str) -> int:
    if current().json:
        say_json({"folder": str(folder), "trusted": trusted})
    else:
        say(f"{folder}: {text}")
    return ExitStatus.OK
