"""`toolreeve hooks`: install, remove and show our hook in agent clients."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliCommand, CliGroup, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.core.errors import ConfigError, ExitStatus

if TYPE_CHECKING:
    from toolreeve.adopt.hook_files import HookedClient
    from toolreeve.adopt.plan import FileChange

NAMES = ("claude-code", "codex", "gemini")
FOLDER = "hooks"


class HookedName(click.Choice[str]):
    """A client's name; one that resembles it is named in the error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            from toolreeve.core.suggest import did_you_mean, find_similar

            close = [name for name in NAMES if str(value).lower() in name or name in str(value).lower()]
            hint = did_you_mean(close[:1] or find_similar(str(value), NAMES, limit=1))
            known = f"those that have one: {', '.join(NAMES)}"
            self.fail(f"{value!r:.60} has no hook{f' ({hint})' if hint else ''}; {known}", param, ctx)
        return str(value)


@click.command(cls=CliCommand)
@click.argument("client", type=HookedName(NAMES))
def hook(client: str) -> int:
    """Answer one hook event of an agent client.

    The client starts this; `toolreeve hooks install` tells it to. The event is read from standard input as JSON.
    """
    from toolreeve.hook.command import main

    return main([client])


@click.group(cls=CliGroup)
def hooks() -> None:
    """Install, remove and show hooks for the own tools of agent clients."""


@hooks.command()
@click.argument("client", type=HookedName(NAMES))
@click.option("--dry-run", is_flag=True, help="Show the change as a diff, and change nothing.")
def install(client: str, *, dry_run: bool) -> int:
    """Let the policy decide about a client's own tools, such as Bash, Edit and WebFetch."""
    return apply_install(client, dry_run=dry_run)


def apply_install(client: str, *, dry_run: bool) -> int:
    from toolreeve.adopt.hook_files import HOOKED, plan_install

    chosen = HOOKED[client]
    change = plan_install(chosen, user_home(), own_program())
    status = _apply(chosen, change, done="installed", dry_run=dry_run)
    if chosen.after and status == ExitStatus.OK and not dry_run:
        note(chosen.after)
    return status


@hooks.command()
@click.argument("client", type=HookedName(NAMES))
@click.option("--dry-run", is_flag=True, help="Show the change as a diff, and change nothing.")
def remove(client: str, *, dry_run: bool) -> int:
    """Remove the hook from a client; its other settings stay."""
    from toolreeve.adopt.hook_files import HOOKED, plan_removal

    chosen = HOOKED[client]
    return _apply(chosen, plan_removal(chosen, user_home()), done="removed", dry_run=dry_run)


@hooks.command()
@click.argument("clients", nargs=-1, type=HookedName(NAMES), metavar="[CLIENT]...")
def status(clients: Sequence[str]) -> int:
    """Show for which clients the hook is installed."""
    from toolreeve.adopt.hook_files import HOOKED

    rows = [describe_hook(HOOKED[name]) for name in clients or NAMES]
    if current().json:
        print_json({"clients": rows})
    else:
        shown = [(row["client"], row["state"], ", ".join(row["events"]), row["file"]) for row in rows]
        print_table(current(), ("client", "hook", "events", "file"), shown)
    return ExitStatus.TOOL_ERROR if any(row["state"] == "unreadable" for row in rows) else ExitStatus.OK


def describe_hook(client: "HookedClient") -> dict[str, Any]:
    from toolreeve.adopt.hook_files import find_installed

    events: tuple[str, ...] = ()
    try:
        events = find_installed(client, user_home())
        state = "installed" if set(events) >= set(client.events) else "in part"
        if not events:
            state = "absent"
    except ConfigError as problem:
        note(str(problem))
        state = "unreadable"
    return {"client": client.name, "state": state, "events": events, "file": str(user_home() / client.file)}


def _apply(client: "HookedClient", change: "FileChange | None", *, done: str, dry_run: bool) -> int:
    from toolreeve.adopt.backups import Backups
    from toolreeve.cli.adopt import diff_lines

    if change is None:
        print_text(f"{client.title}: nothing to do, the hook is {'absent' if done == 'removed' else done}")
        return ExitStatus.OK
    if dry_run:
        print_text("".join(diff_lines(change)))
        return ExitStatus.OK
    backups = Backups(Path(current().configuration().settings.state.dir), folder=FOLDER)
    change.path.parent.mkdir(parents=True, exist_ok=True)
    with backups.locked():
        folder, outcomes = backups.apply([backups.as_before(change)])
    for outcome in outcomes:
        if outcome.problem:
            note(f"{outcome.path}: {outcome.problem}")
            return ExitStatus.TOOL_ERROR
    print_text(f"{client.title}: hook {done} in {change.path}")
    note(f"the file as it was is in {folder}")
    return ExitStatus.OK


def user_home() -> Path:
    from toolreeve.config.xdg import home

    return Path(home(os.environ))


def own_program() -> list[str]:
    """The command line of exactly this installation, independent of PATH and of the client's working directory."""
    script = Path(sys.executable).with_name("toolreeve")
    return [str(script.absolute())] if script.is_file() else [sys.executable, "-P", "-m", "toolreeve"]
