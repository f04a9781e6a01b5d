"""How are the servers of other clients taken over? Into the user's own file, with one entry of ours in each client's.

Everything is shown before it is believed: what went where, what stayed and why. Nothing is changed that cannot be
taken back with `--undo`.
"""

import difflib
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import note, say, say_json, say_table
from toolreeve.core.errors import ConfigError, ExitStatus

if TYPE_CHECKING:
    from toolreeve.adopt.backups import Backups, ChangeOutcome
    from toolreeve.adopt.plan import AdoptionPlan, FileChange, Row
    from toolreeve.config import Configuration

OWN_FOLDER = "toolreeve"
NAMES = ("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "zed")


@click.command(cls=CliCommand)
@click.option("--dry-run", is_flag=True, help="Show what would change, as a difference, and change nothing.")
@click.option("--undo", is_flag=True, help="Take the last adoption back.")
@click.option("--force", is_flag=True, help="With --undo, restore whole files, whatever was changed in them since.")
@click.option("--client", "names", multiple=True, type=click.Choice(NAMES), help="Only this client; may be repeated.")
@click.option("--project", is_flag=True, help="Also the workspace's own files, such as .mcp.json.")
@click.option(
    "--search/--no-search", default=True, help="Let clients search for tools, or list them all; search unless said."
)
@click.option("--count", is_flag=True, help="In a dry run, too, start the servers to measure their lists of tools.")
@click.option("--no-count", is_flag=True, help="Do not start the servers to measure what their lists of tools take up.")
def adopt(names: Sequence[str], **flags: bool) -> int:
    """Take over the MCP servers of other clients.

    The servers of Claude Code and Desktop, Cursor, VS Code, Codex, Gemini CLI and Zed go into your toolreeve.toml, and
    each client is given one entry that starts `toolreeve mcp`.
    """
    if flags["undo"]:
        return _undo(current(), force=flags["force"])
    if flags["force"]:
        raise click.UsageError("--force goes with --undo")
    count = flags["count"] or not (flags["dry_run"] or flags["no_count"])
    return _adopt(current(), names, count=count, **{key: flags[key] for key in ("dry_run", "project", "search")})


def _adopt(
    invocation: Options, names: Sequence[str], *, dry_run: bool, project: bool, search: bool, count: bool
) -> int:
    from toolreeve.adopt.backups import Backups

    found = invocation.configuration()
    ledger = Backups(Path(found.settings.state.dir))
    with nullcontext() if dry_run else ledger.alone():
        plan = _plan(found, names, project=project, search=search)
        folder, outcomes = (None, []) if dry_run or not plan.changes else _written(ledger, plan, found.user_file)
    tokens = _measured(invocation, plan) if count and plan.servers else None
    if invocation.json:
        say_json(_as_json(plan, outcomes, folder, tokens, dry_run=dry_run))
    else:
        failures = {} if dry_run else _unwritten(plan, outcomes)
        _show(invocation, plan, folder, _Saving(tokens, search=search), failures, dry_run=dry_run)
    failed = [outcome for outcome in outcomes if outcome.problem]
    for outcome in failed:
        note(f"{outcome.path}: {outcome.problem}")
    return ExitStatus.TOOL_ERROR if failed or any(row.problem for row in plan.rows) else ExitStatus.OK


def _written(ledger: "Backups", plan: "AdoptionPlan", user_file: Path) -> "tuple[Path | None, list[ChangeOutcome]]":
    for row in plan.rows:
        if row.workspace is not None:
            try:
                row.workspace.mkdir(mode=0o700, exist_ok=True)
            except OSError as problem:
                why = f"{row.client} needs a folder to work in, and it cannot be made: {problem.strerror}"
                raise ConfigError(why, source=row.workspace, fix="name another with --workspace DIR") from None
    return ledger.apply(plan.changes, private=[user_file])


def _plan(found: "Configuration", names: Sequence[str], *, project: bool, search: bool) -> "AdoptionPlan":
    from toolreeve.adopt.clients import CLIENTS, places_of
    from toolreeve.adopt.plan import new_plan
    from toolreeve.core.documents import Document, parse_toml

    user_file, workspace = found.user_file, Path(found.settings.workspace.dir)
    text = user_file.read_bytes().decode() if user_file.is_file() else None
    own = Document(str(user_file), {}) if text is None else parse_toml(text, str(user_file))
    chosen = {name: client for name, client in CLIENTS.items() if not names or name in names}
    try:
        return new_plan(
            places_of(chosen, os.environ, workspace, sys.platform),
            own=own,
            own_text=text,
            command=[*ourselves(), *(["--search"] if search else [])],
            shared=project,
            workspace=_folder_for_others(found),
        )
    except ConfigError as problem:
        raise ConfigError(problem.problem, source=user_file, fix=problem.fix) from None


def _folder_for_others(found: "Configuration") -> Path | None:
    """Where clients work that have no folder: as the command line says, else in one that is made for it. None where the
    user's own file says it for all. Never in the home itself, nor among the user's documents: tools can read all of
    their workspace."""
    said = found.origins["workspace.dir"]
    if said.startswith(str(found.user_file)):
        return None
    return Path(found.home) / OWN_FOLDER if said == "default" else Path(found.settings.workspace.dir)


def ourselves() -> list[str]:
    """How a client starts us, and nothing else of that name, wherever it stands itself: neither what a search finds
    first, nor what lies in its folder."""
    beside = Path(sys.executable).with_name("toolreeve")
    return [str(beside.absolute()), "mcp"] if beside.is_file() else [sys.executable, "-P", "-m", "toolreeve", "mcp"]


def _measured(invocation: Options, plan: "AdoptionPlan") -> Mapping[str, Any]:
    import asyncio

    from toolreeve.cli.token_counts import measure

    return asyncio.run(measure(invocation.configuration(), plan.servers))


class _Saving:
    """What lists of tools take up, before and through us; nothing where it was not measured."""

    def __init__(self, tokens: Mapping[str, Any] | None, *, search: bool) -> None:
        self.tokens = tokens
        self._after: int = 0 if tokens is None else tokens["search" if search else "one_entry"]

    def told(self, row: "Row") -> str:
        """`1166 → 264`, in tokens, of the servers that could be listed."""
        if self.tokens is None or not row.adopted:
            return ""
        names, counted = _names(row), self._counted(row)
        if not counted:
            return "not counted"
        missing = len(names) - len(counted)
        return f"{sum(counted)} → {self._after}" + (f", {missing} not counted" if missing else "")

    def total(self, rows: Sequence["Row"]) -> str:
        """All that was counted, once for each client that reads it; empty where that says no more than a row."""
        counted = [sum(numbers) for row in rows if (numbers := self._counted(row))]
        return f"{sum(counted)} → {self._after * len(counted)}" if len(counted) > 1 else ""

    def _counted(self, row: "Row") -> list[int]:
        known: Mapping[str, int] = {} if self.tokens is None else self.tokens["servers"]
        return [known[name] for name in _names(row) if name in known]

    def remarks(self) -> Iterator[str]:
        if self.tokens is None:
            yield "what this saves was not measured; --count starts the servers and measures it"
            return
        listed, found = self.tokens["one_entry"], self.tokens["search"]
        yield f"tokens are estimates; all tools through one entry take {listed}, searching for them {found}"
        for name, why in self.tokens["not_listed"].items():
            yield f"{name!r} could not be listed and is not counted: {why or 'it did not answer in time'}"


def _names(row: "Row") -> set[str]:
    return {settled.name for _, settled in row.adopted}


def _show(
    invocation: Options,
    plan: "AdoptionPlan",
    folder: Path | None,
    saving: _Saving,
    failures: Mapping[Path, str],
    *,
    dry_run: bool,
) -> None:
    if not plan.rows:
        say("no client's file was found")
        return
    if dry_run:
        for change in plan.changes:
            say(_veiled("".join(_difference(change)), plan.secrets))
    rows = [
        (row.client, str(row.path), str(len(row.adopted)), saving.told(row), _became(row, failures, dry_run=dry_run))
        for row in plan.rows
    ]
    if total := saving.total(plan.rows):
        rows.append(("all that was counted", "", "", total, ""))
    say_table(invocation, ("client", "file", "servers", "tokens", "result"), rows)
    for row in plan.rows:
        for text in _remarks(row):
            note(f"{row.path}: {text}")
    if dry_run and plan.secrets:
        note("[redacted] stands for what looks like a secret; it would be taken over as it is")
    if plan.servers:
        for text in saving.remarks():
            note(text)
    if folder is not None:
        note(f"backups are in {folder}; `toolreeve adopt --undo` takes it back")


def _difference(change: "FileChange") -> Iterator[str]:
    before, after = (text.splitlines(keepends=True) for text in (change.before or "", change.after))
    for line in difflib.unified_diff(before, after, str(change.path), str(change.path)):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _veiled(difference: str, secrets: Collection[str]) -> str:
    """Without the secrets of what is taken over, and without what looks like one in the lines around it."""
    from toolreeve.config.mcp_servers.secret_values import find_secrets, redact
    from toolreeve.core.secrets.scrubber import Scrubber

    lines = Scrubber(secrets).text(difference).splitlines(keepends=True)
    return "".join(redact(line, find_secrets([line[1:].strip()])) for line in lines)


def _became(row: "Row", failures: Mapping[Path, str], *, dry_run: bool) -> str:
    if row.problem:
        return f"left alone: {row.problem}"
    if not row.adopted:
        return "nothing to do"
    if row.path in failures:
        return f"not changed: {failures[row.path]}"
    return "would become one entry" if dry_run else "one entry now"


def _unwritten(plan: "AdoptionPlan", outcomes: Sequence["ChangeOutcome"]) -> dict[Path, str]:
    """The files that are as they were, and why; where the user's own cannot be written, no other is."""
    told = {outcome.path: outcome.problem for outcome in outcomes}
    problems = {
        change.path: told.get(change.path, "your toolreeve.toml could not be written") for change in plan.changes
    }
    return {path: problem for path, problem in problems.items() if problem}


def _remarks(row: "Row") -> Iterator[str]:
    for key, settled in row.adopted:
        if not settled.new:
            yield f"{key!r} is there already" + (f", as {settled.name!r}" if settled.name != key else "")
        elif settled.name != key:
            yield f"{key!r} is called {settled.name!r} here"
    if row.workspace is not None:
        yield f"{row.client} starts servers in /, so its tools are given a folder of their own: {row.workspace}"
    for key, what in row.lost:
        yield f"{key!r}: {what}"
    for key, why in row.kept:
        yield f"{key!r} stays where it is: {why}"


def _as_json(
    plan: "AdoptionPlan", outcomes: Sequence["ChangeOutcome"], folder: Path | None, tokens: Any, *, dry_run: bool
) -> dict[str, Any]:
    problems = {outcome.path: outcome.problem for outcome in outcomes}
    return {
        "dry_run": dry_run,
        "added": list(plan.added),
        "clients": [
            {
                "client": row.client,
                "file": str(row.path),
                "adopted": {key: settled.name for key, settled in row.adopted},
                "lost": [f"{key}: {what}" for key, what in row.lost],
                "kept": dict(row.kept),
                "workspace": None if row.workspace is None else str(row.workspace),
                "problem": row.problem or problems.get(row.path, ""),
            }
            for row in plan.rows
        ],
        "changed": [str(change.path) for change in plan.changes if not problems.get(change.path)],
        "backups": None if folder is None else str(folder),
        "tokens": tokens,
    }


def _undo(invocation: Options, *, force: bool) -> int:
    from toolreeve.adopt.backups import Backups

    ledger = Backups(Path(invocation.configuration().settings.state.dir))
    with ledger.alone():
        outcomes = ledger.undo(force=force)
    if outcomes is None:
        raise click.UsageError("there is no adoption to take back")
    if invocation.json:
        say_json({str(outcome.path): outcome.problem or "restored" for outcome in outcomes})
    else:
        for outcome in outcomes:
            say(f"{outcome.path}: {outcome.problem or _restored(outcome)}")
            for name in outcome.theirs:
                note(f"{outcome.path}: {name!r} was changed since and stays as it is now")
    return ExitStatus.TOOL_ERROR if any(outcome.problem for outcome in outcomes) else ExitStatus.OK


def _restored(outcome: "ChangeOutcome") -> str:
    return "taken back, and what was changed since is still there" if outcome.merged else "as it was"
