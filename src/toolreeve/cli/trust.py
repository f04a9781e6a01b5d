"""May the workspace's own tools run? Only a person says so, here, for the files as they are now."""

from pathlib import Path

import click

from toolreeve.cli.invocation import Command, current
from toolreeve.cli.output import note, say, say_json


@click.command(cls=Command)
@click.option("--revoke", is_flag=True, help="Stop trusting the folder.")
def trust(*, revoke: bool) -> None:
    """Trust the workspace: what its toolreeve.toml names as tool files and as commands of the quality tools
    will run, and so will the MCP servers of that file and of .mcp.json.

    A change of these files, or of a file of the workspace that they name to be run, ends the trust.
    """
    from toolreeve.config.trust import TrustedFolders

    found = current().configuration()
    folders = TrustedFolders(Path(found.settings.state.dir))
    folder = found.project_file.parent
    if revoke:
        known = folders.revoke(folder)
        _answer(folder, trusted=False, text="no longer trusted" if known else "was not trusted")
    elif found.code is None:
        raise click.UsageError(
            f"there is nothing to trust: {found.project_file} names no tool files, no commands and no servers, "
            "and there is no .mcp.json beside it"
        )
    else:
        for name in found.code.files:
            note(f"will run as code: {name}")
        for command in found.code.commands:
            note(f"will be run: {command}")
        for server in found.code.servers:
            note(f"will be used as a server: {server}")
        folders.add(folder, found.code.digest)
        _answer(folder, trusted=True, text="trusted as it is now")


def _answer(folder: Path, *, trusted: bool, text: str) -> None:
    if current().json:
        say_json({"folder": str(folder), "trusted": trusted})
    else:
        say(f"{folder}: {text}")
