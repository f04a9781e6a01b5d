"""`toolreeve adopt`: moves the MCP servers of other clients behind toolreeve.

They go into the user's own file, and each client gets one entry that starts `toolreeve mcp`. The output shows what went
where, and what stayed and why. Every change can be undone with `--undo`.
"""

import asyncio
import difflib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.confirm import choose
from toolreeve.cli.options import CliCommand, Options, current, on_terminal
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.core.errors import ConfigError, ExitStatus

if TYPE_CHECKING:
    from toolreeve.adopt.backups import Backups, ChangeOutcome
    from toolreeve.adopt.plan import AdoptionPlan, FileChange, Row
    from toolreeve.config import Configuration

OWN_FOLDER = "toolreeve"
NAMES = (
    *("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "zed"),
    *("windsurf", "qwen", "opencode", "copilot", "goose"),
)


@click.command(cls=CliCommand)
@click.option("--dry-run", is_flag=True, help="Show the changes as a diff, and change nothing.")
@click.option("--undo", is_flag=True, help="Undo the last adoption.")
@click.option("--force", is_flag=True, help="With --undo: restore whole files, discarding later changes.")
@click.option("--client", "names", multiple=True, type=click.Choice(NAMES), help="Only this client; repeatable.")
@click.option("--project", is_flag=True, help="Include files of the workspace, such as .mcp.json.")
@click.option(
    "--trust",
    multiple=True,
    metavar="[SERVER=]CHOICE",
    help="How far to trust the servers: ask (default), reads or all; repeatable. Asked on a terminal if not given.",
)
@click.option("--search/--no-search", default=True, help="Let clients search for tools (default), or list them all.")
@click.option("--own-servers", is_flag=True, help="Show each client only the servers that came from it.")
@click.option("--hooks", is_flag=True, help="Also let the policy decide about the clients' own tools, where hooks can.")
@click.option("--count", is_flag=True, help="Measure the tool lists in a dry run too: starts the servers.")
@click.option("--no-count", is_flag=True, help="Do not start the servers to measure their tool lists.")
def adopt(names: Sequence[str], trust: Sequence[str], **flags: bool) -> int:
    """Adopt the MCP servers of other clients.

    The servers of Claude Code and Desktop, Cursor, VS Code, Codex, Gemini CLI, Zed, Windsurf, Qwen Code, opencode,
    Copilot CLI and goose move into your toolreeve.toml, and each client gets one entry that starts `toolreeve mcp`.
    """
    if flags["undo"]:
        return _undo(current(), force=flags["force"])
    if flags["force"]:
        raise click.UsageError("--force needs --undo")
    count = flags["count"] or not (flags["dry_run"] or flags["no_count"])
    plan = partial(make_plan, current().configuration(), names, project=flags["project"], search=flags["search"])
    first = plan()
    chosen = _trust(current(), first, trust, dry_run=flags["dry_run"])
    own = flags["own_servers"] or (not (trust or flags["dry_run"]) and _wants_own_servers(current(), first))
    hooked = _hooked(first)
    hooks = flags["hooks"] or (not (trust or flags["dry_run"]) and _wants_hooks(current(), hooked))
    status = _adopt(
        current(),
        partial(plan, trust=chosen, own_servers=own),
        dry_run=flags["dry_run"],
        search=flags["search"],
        count=count,
    )
    if not hooks or current().json:
        return status
    from toolreeve.cli.hooks import apply_install

    return max([status, *(apply_install(name, dry_run=flags["dry_run"]) for name in hooked)])


def _hooked(plan: "AdoptionPlan") -> list[str]:
    """The adopted clients whose own tools a hook can put under the policy."""
    from toolreeve.adopt.hook_files import HOOKED

    adopted = {row.client for row in plan.rows if row.adopted}
    return [client.name for client in HOOKED.values() if client.title in adopted]


def _wants_hooks(options: Options, hooked: Sequence[str]) -> bool:
    """Asked on a terminal."""
    if options.json or not on_terminal() or not hooked:
        return False
    meanings = {"leave": "they stay as they are", "hooks": "your policy decides about them as well"}
    return asyncio.run(choose(f"What about the own tools of {', '.join(hooked)}?", meanings)) == "hooks"


def _trust(options: Options, plan: "AdoptionPlan", given: Sequence[str], *, dry_run: bool) -> dict[str, str]:
    """The choice for each new server: as given, else as the user answers, else to ask."""
    from toolreeve.adopt.trust import MEANINGS, parse_choices

    if given or dry_run or options.json or not on_terminal():
        try:
            return parse_choices(given, plan.added)
        except ValueError as problem:
            raise click.BadParameter(str(problem), param_hint="--trust") from None

    async def ask() -> dict[str, str]:
        answers = {name: await choose(_question(name, plan), MEANINGS) for name in plan.added}
        return {name: answer for name, answer in answers.items() if answer is not None}

    return asyncio.run(ask())


def _wants_own_servers(options: Options, plan: "AdoptionPlan") -> bool:
    """Asked on a terminal where clients would see servers of others."""
    if options.json or not on_terminal() or sum(bool(row.adopted) for row in plan.rows) < 2:
        return False
    meanings = {"all": "every client sees the servers of all", "own": "each sees only those that came from it"}
    return asyncio.run(choose("Which servers do your clients see?", meanings)) == "own"


def _question(name: str, plan: "AdoptionPlan") -> str:
    entry = plan.added[name]
    target = entry.get("url") or " ".join([str(entry.get("command", "")), *map(str, entry.get("args", ()))])
    return f"How far do you trust the server {name!r} ({redact_diff(target, plan.secrets)})?"


def _adopt(options: Options, make: "Callable[[], AdoptionPlan]", *, dry_run: bool, search: bool, count: bool) -> int:
    from toolreeve.adopt.backups import Backups

    found = options.configuration()
    backups = Backups(Path(found.settings.state.dir))
    folder: Path | None = None
    outcomes: list[ChangeOutcome] = []
    with nullcontext() if dry_run else backups.locked():
        plan = make()
        if plan.changes and not dry_run:
            folder, outcomes = write_plan(backups, plan, found.user_file)
    tokens = _measure(options, plan) if count and plan.servers else None
    if options.json:
        print_json(_as_json(plan, outcomes, folder, tokens, dry_run=dry_run))
    else:
        failures = {} if dry_run else _failures(plan, outcomes)
        _show(options, plan, folder, _TokenReport(tokens, search=search), failures, dry_run=dry_run)
    failed = [outcome for outcome in outcomes if outcome.problem]
    for outcome in failed:
        note(f"{outcome.path}: {outcome.problem}")
    return ExitStatus.TOOL_ERROR if failed or any(row.problem for row in plan.rows) else ExitStatus.OK


def write_plan(backups: "Backups", plan: "AdoptionPlan", user_file: Path) -> "tuple[Path | None, list[ChangeOutcome]]":
    for row in plan.rows:
        if row.workspace is not None:
            try:
                row.workspace.mkdir(mode=0o700, exist_ok=True)
            except OSError as problem:
                why = f"the workspace of {row.client} cannot be created: {problem.strerror}"
                raise ConfigError(why, source=row.workspace, fix="choose another with --workspace DIR") from None
    return backups.apply(plan.changes, private=[user_file])


def make_plan(
    found: "Configuration",
    names: Sequence[str],
    *,
    project: bool,
    search: bool,
    trust: Mapping[str, str] | None = None,
    own_servers: bool = False,
) -> "AdoptionPlan":
    from toolreeve.adopt.clients import CLIENTS, locate_files
    from toolreeve.adopt.plan import new_plan
    from toolreeve.core.documents import Document, parse_toml

    user_file = found.user_file
    workspace = Path(found.settings.workspace.dir)
    text = user_file.read_bytes().decode() if user_file.is_file() else None
    own = Document(str(user_file), {}) if text is None else parse_toml(text, str(user_file))
    chosen = {name: client for name, client in CLIENTS.items() if not names or name in names}
    try:
        return new_plan(
            locate_files(chosen, os.environ, workspace, sys.platform),
            own=own,
            own_text=text,
            command=[*own_command(), "--search"] if search else own_command(),
            shared=project,
            workspace=_default_workspace(found),
            trust=trust,
            own_servers=own_servers,
        )
    except ConfigError as problem:
        raise ConfigError(problem.problem, source=user_file, fix=problem.fix) from None


def _default_workspace(found: "Configuration") -> Path | None:
    """The workspace of clients that have no folder: from the command line, else a folder created for it. None if the
    user's own file sets one for all. Never the home itself, nor a folder of the user's documents: tools can read all of
    their workspace."""
    origin = found.origins["workspace.dir"]
    if origin.startswith(str(found.user_file)):
        return None
    return Path(found.home) / OWN_FOLDER if origin == "default" else Path(found.settings.workspace.dir)


def own_command() -> list[str]:
    from toolreeve.cli.hooks import own_program

    return [*own_program(), "mcp"]


def _measure(options: Options, plan: "AdoptionPlan") -> Mapping[str, Any]:
    from toolreeve.cli.token_counts import measure

    return asyncio.run(measure(options.configuration(), plan.servers))


class _TokenReport:
    """The tokens of tool lists, before and after adoption; empty if not measured."""

    def __init__(self, tokens: Mapping[str, Any] | None, *, search: bool) -> None:
        self.tokens = tokens
        self._after = 0
        if tokens is not None:
            self._after = tokens["search"] if search else tokens["one_entry"]

    def cell(self, row: "Row") -> str:
        """`1166 → 264`, in tokens, of the servers that could be listed."""
        if self.tokens is None or not row.adopted:
            return ""
        counted = self._counted(row)
        if not counted:
            return "not counted"
        missing = len(_names(row)) - len(counted)
        return f"{sum(counted)} → {self._after}" + (f", {missing} not counted" if missing else "")

    def total(self, rows: Sequence["Row"]) -> str:
        """The sum over all clients; empty for a single one."""
        counted = [sum(self._counted(row)) for row in rows if self._counted(row)]
        return f"{sum(counted)} → {self._after * len(counted)}" if len(counted) > 1 else ""

    def _counted(self, row: "Row") -> list[int]:
        known: Mapping[str, int] = {} if self.tokens is None else self.tokens["servers"]
        return [known[name] for name in _names(row) if name in known]

    def comments(self) -> Iterator[str]:
        if self.tokens is None:
            yield "token savings were not measured; --count starts the servers and measures them"
            return
        all_tools = self.tokens["one_entry"]
        search = self.tokens["search"]
        yield f"token counts are estimates: {all_tools} if clients list all tools, {search} if they search"
        for name, why in self.tokens["not_listed"].items():
            yield f"{name!r} is not counted, its tools could not be listed: {why or 'no answer in time'}"


def _names(row: "Row") -> set[str]:
    return {assigned.name for _, assigned in row.adopted}


def _show(
    options: Options,
    plan: "AdoptionPlan",
    folder: Path | None,
    report: _TokenReport,
    failures: Mapping[Path, str],
    *,
    dry_run: bool,
) -> None:
    if not plan.rows:
        print_text("no client configuration found")
        return
    if dry_run:
        for change in plan.changes:
            print_text(redact_diff("".join(diff_lines(change)), plan.secrets))
    rows = [
        (row.client, str(row.path), str(len(row.adopted)), report.cell(row), _result(row, failures, dry_run=dry_run))
        for row in plan.rows
    ]
    total = report.total(plan.rows)
    if total:
        rows.append(("total counted", "", "", total, ""))
    print_table(options, ("client", "file", "servers", "tokens", "result"), rows)
    for row in plan.rows:
        for text in _comments(row):
            note(redact_diff(f"{row.path}: {text}", plan.secrets))
    if dry_run and plan.secrets:
        note("[redacted] hides possible secrets in this output; they would be moved unchanged")
    if plan.servers:
        for text in (*report.comments(), *_consequences(plan)):
            note(text)
    if folder is not None:
        note(f"backups are in {folder}; undo with `toolreeve adopt --undo`")


def _consequences(plan: "AdoptionPlan") -> Iterator[str]:
    """What adoption changes for the user beyond the files."""
    from toolreeve.adopt.clients import CLIENTS
    from toolreeve.adopt.hook_files import HOOKED
    from toolreeve.adopt.trust import MEANINGS

    if plan.own_servers:
        yield "each client sees only the servers that came from it, by `--tools` in its entry's args"
    elif len(plan.servers) > 1 or len(plan.rows) > 1:
        yield (
            "every client now sees the servers of all clients; --own-servers shows each only its own, and"
            " `--tools NAME,…` in an entry's args narrows it (see `toolreeve mcp --help`)"
        )
    for choice, (names, how) in _by_trust(plan).items():
        if names:
            yield f"{', '.join(names)}: {MEANINGS[choice]} ({how})"
    titles = {client.title: client for client in CLIENTS.values()}
    for title in dict.fromkeys(row.client for row in plan.rows if row.adopted):
        client = titles.get(title)
        if client is not None and client.own_tools:
            yield f"{title} keeps its own shell and file tools, which do not pass through toolreeve: {client.own_tools}"
            if client.name in HOOKED:
                yield f"or let your policy decide about them: `toolreeve hooks install {client.name}`"


def _by_trust(plan: "AdoptionPlan") -> dict[str, tuple[list[str], str]]:
    """The new servers by how far they are trusted, and how to change it."""
    reads = [name for name, entry in plan.added.items() if entry.get("trusted")]
    everything = [name for name, entry in plan.added.items() if entry.get("danger")]
    asked = [name for name in plan.added if name not in reads and name not in everything]
    return {
        "ask": (asked, "`trusted = true` in its table lets those run that it calls read-only"),
        "reads": (reads, "`trusted = true` in its table"),
        "all": (everything, '`danger = "safe"` in its table'),
    }


def diff_lines(change: "FileChange") -> Iterator[str]:
    before, after = (text.splitlines(keepends=True) for text in (change.before or "", change.after))
    for line in difflib.unified_diff(before, after, str(change.path), str(change.path)):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def redact_diff(diff: str, secrets: Collection[str]) -> str:
    """Without the secrets of the adopted servers, and without what looks like one in the lines around them."""
    from toolreeve.core.secrets.redactor import Redactor

    return Redactor(secrets).text(diff)


def _result(row: "Row", failures: Mapping[Path, str], *, dry_run: bool) -> str:
    if row.problem:
        return f"not changed: {row.problem}"
    if not row.adopted:
        return "nothing to do"
    if row.path in failures:
        return f"not changed: {failures[row.path]}"
    return "would become one entry" if dry_run else "one entry now"


def _failures(plan: "AdoptionPlan", outcomes: Sequence["ChangeOutcome"]) -> dict[Path, str]:
    """The unchanged files and why; if the user's own file cannot be written, no other is."""
    known = {outcome.path: outcome.problem for outcome in outcomes}
    problems = {
        change.path: known.get(change.path, "your toolreeve.toml could not be written") for change in plan.changes
    }
    return {path: problem for path, problem in problems.items() if problem}


def _comments(row: "Row") -> Iterator[str]:
    for key, assigned in row.adopted:
        if assigned.new and assigned.name != key:
            yield f"{key!r} is renamed to {assigned.name!r}"
        elif not assigned.new and assigned.name != key:
            yield f"{key!r} is already configured, as {assigned.name!r}"
        elif not assigned.new:
            yield f"{key!r} is already configured"
    if row.workspace is not None:
        yield f"{row.client} starts servers in /, so its tools get their own workspace: {row.workspace}"
    for key, what in row.lost:
        yield f"{key!r}: {what}"
    for key, why in row.kept:
        yield f"{key!r} stays in this file: {why}"


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
                "adopted": {key: assigned.name for key, assigned in row.adopted},
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


def _undo(options: Options, *, force: bool) -> int:
    from toolreeve.adopt.backups import Backups

    backups = Backups(Path(options.configuration().settings.state.dir))
    with backups.locked():
        outcomes = backups.undo(force=force)
    if outcomes is None:
        raise click.UsageError("no adoption to undo")
    if options.json:
        print_json({str(outcome.path): outcome.problem or "restored" for outcome in outcomes})
    else:
        for outcome in outcomes:
            restored = "restored, later changes kept" if outcome.merged else "restored"
            print_text(f"{outcome.path}: {outcome.problem or restored}")
            for name in outcome.kept:
                note(f"{outcome.path}: {name!r} was changed since and is kept as it is now")
    return ExitStatus.TOOL_ERROR if any(outcome.problem for outcome in outcomes) else ExitStatus.OK
