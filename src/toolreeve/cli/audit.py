"""`toolreeve audit`: read, export and verify the record of calls.

All commands but `accept`, `archive`, `rotate` and `repair` open it read-only.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from os.path import commonprefix
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from toolreeve.cli.audit_upkeep import accept, archive, repair, rotate, verify
from toolreeve.cli.options import CliGroup, Options, current, on_terminal
from toolreeve.cli.output import binary_stdout, count, note, print_json, print_table, print_text
from toolreeve.cli.record import create_private_file, format_time, open_audit
from toolreeve.cli.suggestions import complete_calls
from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ExitStatus, ToolError

if TYPE_CHECKING:
    from toolreeve.record.audit import AuditRecord, Filter

FORMATS = ("jsonl", "csv", "parquet")
HEAD = ("time", "call", "tool", "touched", "outcome", "ms")
TOUCHED = HEAD.index("touched")
COLUMN_GAP = 3
SHORTEST_ID = 8
Function = Callable[..., Any]


@click.group(cls=CliGroup)
def audit() -> None:
    """Read, export and verify the record of calls."""


for each in (verify, accept, archive, rotate, repair):
    audit.add_command(each)


def _filter_options(command: Function) -> Function:
    for name, description in (
        ("--until", "Only records before this time."),
        ("--since", "Only records from this time on: ISO 8601, seconds since the epoch, or an age such as 1h."),
        ("--success", "Only successful calls (true) or failed ones (false)."),
        ("--code", "Only calls that failed with this error code."),
        ("--user", "Only calls of this user."),
        ("--session", "Only calls of this session."),
        ("--tool", "Only calls of this tool."),
        ("--kind", "Only records of this kind: call, intent, …"),
    ):
        command = click.option(name, help=description)(command)
    return command


def _parse_filter(values: dict[str, str | None], **defaults: str) -> "Filter":
    from toolreeve.record.audit import Filter

    return Filter.parse(defaults | {name: value for name, value in values.items() if value is not None})


@audit.command(name="list")
@click.option("--last", type=click.IntRange(1, 10_000), default=20, show_default=True, help="The number of records.")
@click.option("--all", "everywhere", is_flag=True, help="Records of all workspaces, not only of this one.")
@_filter_options
def list_(last: int, everywhere: bool, **filters: str | None) -> int:  # noqa: FBT001 - a flag of the command line
    """List records, newest first: by default the results of calls in this workspace."""
    of_calls = filters["kind"] in (None, "call", "intent")  # other records belong to no workspace
    here = (
        {}
        if everywhere or not of_calls
        else {"workspace": os.path.realpath(current().configuration().settings.workspace.dir)}
    )
    records = asyncio.run(_list(current(), _parse_filter(filters, kind="call", **here), last))
    if not records and here and not current().json:
        note(f"no such records of calls in {here['workspace']}; --all includes other workspaces")
    if current().json:
        print_json([record.to_dict() for record in records])
    else:
        ids = short_ids([record.call_id for record in records])
        rows = [_row(record, ids[record.call_id]) for record in records]
        print_table(current(), HEAD, _fitted(rows) if on_terminal() else rows)
    return ExitStatus.OK


async def _list(options: Options, wanted: "Filter", last: int) -> "Sequence[AuditRecord]":
    async with open_audit(options) as found:
        return [] if found is None else await found.list(wanted, limit=last)


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """The shortest beginnings that tell these ids apart; `show` and `undo` accept them."""
    known = sorted(set(ids))
    shortest = SHORTEST_ID
    for before, after in pairwise(known):
        shortest = max(shortest, len(commonprefix((before, after))) + 1)  # noqa: RUF071 - not paths
    return {each: each[:shortest] for each in known}


def _row(record: "AuditRecord", short_id: str) -> tuple[str, ...]:
    values = record.to_dict()
    outcome = "ok" if values.get("success") else record.kind
    if values.get("code"):
        outcome = values["code"]
    taken = values.get("duration_ms")
    taken = f"{taken:.0f}" if isinstance(taken, int | float) else ""
    at = str(values["timestamp"] or "")[:19].replace("T", " ")
    return (at, short_id, str(values.get("tool") or ""), _touched(values), str(outcome), taken)


def _touched(values: Mapping[str, Any]) -> str:
    """The command, or the files and hosts; files of the workspace by their relative names."""
    effects = values.get("effects")
    found = [str(each).partition(":") for each in effects] if isinstance(effects, list) else []
    commands = [target for kind, _, target in found if kind == "exec"]
    below = f"{values.get('workspace')}/"
    targets = commands or [target.removeprefix(below) for _, _, target in found]
    first = " ".join(targets[0].split()) if targets else ""
    return f"{first} +{len(targets) - 1}" if len(targets) > 1 and not commands else first


def _fitted(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows cut to the width of the terminal, each on one line: the day is left out, long cells end with `…`."""
    width = shutil.get_terminal_size().columns
    today = format_time(time.time())[:10]
    cut: list[list[str]] = []
    for at, call, tool, touched, outcome, taken in rows:
        moment = at[11:] if at.startswith(today) else at[5:16]
        cut.append([moment, call, _cut(tool, 16), touched, _cut(outcome, 18), taken])
    widths = [max(map(len, column)) for column in zip(HEAD, *cut, strict=True)]
    others = sum(widths) - widths[TOUCHED] + len(HEAD) * COLUMN_GAP
    room = max(width - others, 8)
    for row in cut:
        row[TOUCHED] = _cut(row[TOUCHED], room)
    return [tuple(row) for row in cut]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


@audit.command()
@click.argument("call_id", metavar="CALL", shell_complete=complete_calls)
def show(call_id: str) -> int:
    """Show all records of a call. A unique prefix of its id is enough."""
    records = [record.to_dict() for record in asyncio.run(_show(current(), call_id))]
    if not records:
        message = f"{call_id!r} is not the id of one recorded call: either none begins with it or several do"
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, message)
    if current().json:
        print_json(records)
    else:
        for record in records:
            print_text(json.pretty(record))
    return ExitStatus.OK


async def _show(options: Options, call_id: str) -> "Sequence[AuditRecord]":
    async with open_audit(options) as found:
        return [] if found is None else await found.show(call_id)


@audit.command()
@click.option("--format", "form", type=click.Choice(FORMATS), default="jsonl", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="A new file; standard output by default.")
@_filter_options
def export(form: str, output: Path | None, **filters: str | None) -> int:
    """Export records, oldest first, as JSON Lines, CSV or Parquet."""
    wanted = _parse_filter(filters)
    if output is None:
        with binary_stdout() as stream:
            asyncio.run(_export(current(), form, stream, wanted))
    else:
        with create_private_file(output) as stream:
            written = asyncio.run(_export(current(), form, stream, wanted))
        if current().json:
            print_json({"file": str(output), "format": form, "records": written})
        else:
            note(f"{count(written, 'record')} written to {output}")
    return ExitStatus.OK


async def _export(options: Options, form: str, stream: IO[bytes], wanted: "Filter") -> int:
    async with open_audit(options) as found:
        return 0 if found is None else await found.export(form, stream, wanted)
