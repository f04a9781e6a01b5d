"""`toolreeve audit`: read, export and verify the record of calls.

All commands but `accept`, `archive`, `rotate` and `repair` open it read-only.
"""

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from os.path import commonprefix
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliGroup, Options, current, on_terminal
from toolreeve.cli.output import binary_stdout, count, note, print_json, print_table, print_text
from toolreeve.cli.record import format_time
from toolreeve.cli.suggestions import complete_calls
from toolreeve.config.os_user import os_user_name
from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ExitStatus, ToolError

if TYPE_CHECKING:
    from toolreeve.record.audit import Audit, AuditRecord, Filter
    from toolreeve.record.chain import Head
    from toolreeve.record.store import Store
    from toolreeve.record.verify import Verification

FORMATS = ("jsonl", "csv", "parquet")
HEAD = ("time", "call", "tool", "touched", "outcome", "ms")
TOUCHED = HEAD.index("touched")
COLUMN_GAP = 3
SHORTEST_ID = 8
_HASH = re.compile(r"[0-9a-fA-F]{64}")
Function = Callable[..., Any]


@click.group(cls=CliGroup)
def audit() -> None:
    """Read, export and verify the record of calls."""


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


@asynccontextmanager
async def open_audit(options: Options) -> "AsyncIterator[Audit | None]":
    """The record, read-only; None if nothing was ever recorded."""
    from toolreeve.config.xdg import DATABASE
    from toolreeve.record.audit import Audit
    from toolreeve.record.store import Store
    from toolreeve.record.witness import Witness

    path = Path(options.configuration().settings.state.dir) / DATABASE
    if not path.exists() and not Witness(path).path.exists():
        yield None
        return
    store = Store(path, read_only=True)
    await store.start()
    try:
        yield Audit(store)
    finally:
        await store.close()


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
        with _new_file(output) as stream:
            written = asyncio.run(_export(current(), form, stream, wanted))
        if current().json:
            print_json({"file": str(output), "format": form, "records": written})
        else:
            note(f"{count(written, 'record')} written to {output}")
    return ExitStatus.OK


def _new_file(path: Path) -> IO[bytes]:
    """Private to its owner: arguments of calls are confidential."""
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    except OSError as problem:
        raise click.UsageError(f"{path} cannot be written: {problem.strerror}") from None


async def _export(options: Options, form: str, stream: IO[bytes], wanted: "Filter") -> int:
    async with open_audit(options) as found:
        return 0 if found is None else await found.export(form, stream, wanted)


@audit.command()
@click.option("--expect", metavar="HASH", help="The expected head hash, kept elsewhere.")
@click.option("--file", "archived", type=click.File("rb"), help="Verify this archive instead of the record.")
def verify(expect: str | None, archived: IO[bytes] | None) -> int:
    """Verify that no record was edited, removed, inserted, moved or lost.

    The end of an archive must be known to the record, which `audit archive` writes it to, or be given by --expect.

    Exits with 7 if a record was changed or the witness cannot be trusted, and with 8 if acknowledged records are
    missing from the end and nothing else is wrong.
    """
    if archived is not None:
        return asyncio.run(_verify_archive(current(), archived, expect))
    return asyncio.run(_verify(current(), expect))


async def _verify(options: Options, expect: str | None) -> int:
    from toolreeve.record.verify import Verification

    async with open_audit(options) as found:
        if found is None and expect is None:
            _print_verification(options, Verification())
            return ExitStatus.OK
        if found is None:
            note("nothing is recorded, but a head hash was expected")
            return ExitStatus.TAMPERED
        verified = await found.verify(expect=expect)
    return _report(options, verified)


async def _verify_archive(options: Options, archived: IO[bytes], expect: str | None) -> int:
    from toolreeve.record.archive import read_archive
    from toolreeve.record.verify import verify_archive

    heads = {expect or ""}
    if expect is None:
        async with open_audit(options) as found:
            heads = set() if found is None else set(await _archive_heads(found))
    hashes = {bytes.fromhex(head) for head in heads if _HASH.fullmatch(head)}
    return _report(options, verify_archive(read_archive(archived), heads=hashes))


def _report(options: Options, verified: "Verification") -> int:
    _print_verification(options, verified)
    return {"intact": ExitStatus.OK, "lost": ExitStatus.LOST}.get(verified.state, ExitStatus.TAMPERED)


def _print_verification(options: Options, verified: "Verification") -> None:
    head = verified.head.hash.hex()
    accepted_gaps = sorted(verified.accepted & set(verified.gaps))
    if options.json:
        print_json(
            {
                "ok": verified.ok,
                "state": verified.state,
                "records": verified.records,
                "head": head,
                "witnessed_since": verified.since,
                "problems": [str(problem) for problem in verified.problems],
                "findings": [problem.to_dict() for problem in verified.problems],
                "unlisted": verified.unlisted,
                "accepted_gaps": accepted_gaps,
                "repaired": [problem.to_dict() for problem in verified.repaired],
                "archived_up_to": verified.base.seq,
            }
        )
    elif verified.ok:
        print_text(f"{count(verified.records, 'record')}, hash chain intact\nhead {head}")
        for seq in accepted_gaps:
            print_text(f"accepted gap: record {seq}: {verified.gaps[seq].get('message')}")
        for problem in verified.repaired:
            print_text(f"repaired: {problem}")
        if verified.base.seq:
            print_text(f"records up to {verified.base.seq} are in an archive")
        if verified.since and verified.since > verified.base.seq:
            print_text(f"no witness before record {verified.since}")
    else:
        for problem in verified.problems:
            print_text(str(problem))
        if verified.unlisted:
            print_text(f"and {verified.unlisted} more")
        print_text(f"the record is {verified.state}")


@audit.command()
@click.argument("record", type=click.IntRange(min=1), required=False)
@click.option("--reason", default="", help="The reason, which is recorded.")
def accept(record: int | None, reason: str) -> int:
    """Accept a gap that `verify` reports, by the number of its record. The gap stays recorded.

    Without a number, record the gaps that the witness shows now, and list those that are not accepted.
    """
    return asyncio.run(_accept(current(), record, reason))


async def _accept(options: Options, record: int | None, reason: str) -> int:
    from toolreeve.cli.record import open_journal
    from toolreeve.record.audit import Audit

    async with open_journal(options) as (store, journal):
        verified = await Audit(store).verify()
        open_gaps = {problem.gap: problem for problem in verified.problems if problem.gap is not None}
        if record in open_gaps:
            await journal.accept(record, user=os_user_name(), reason=reason)
            print_text(f"accepted: {open_gaps[record].text}")
            return ExitStatus.OK
    for problem in open_gaps.values():
        print_text(str(problem))
    if not open_gaps:
        note("no gaps to accept")
    return ExitStatus.OK if record is None else ExitStatus.NOT_FOUND


@audit.command()
@click.argument("output", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--before", metavar="TIME", default="0s", help="Up to the first record from this time on; default: now.")
def archive(output: Path, before: str) -> int:
    """Copy the oldest records to a new file that `audit verify --file` can verify.

    That it was done, and where the archive ends, is recorded. No record is removed.
    """
    return asyncio.run(_archive(current(), output, before))


async def _archive(options: Options, output: Path, before: str) -> int:
    from toolreeve.cli.record import open_journal
    from toolreeve.record.archive import ARCHIVED

    until = _parse_filter({"until": before}).until or 0.0
    async with open_journal(options) as (store, journal):
        head = await _write_archive(options, store, output, until, ("intact", "lost"))
        if head is None:
            return ExitStatus.TAMPERED
        body = _archive_body(output, head)
        await journal.note(ARCHIVED, body)
    _print_archive(options, body, f"records up to {head.seq} copied to {output}")
    return ExitStatus.OK


@audit.command()
@click.argument("output", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--before", metavar="TIME", default="30d", show_default=True, help="Up to the first record from then on.")
def rotate(output: Path, before: str) -> int:
    """Move the oldest records to a new file that `audit verify --file` can verify.

    They leave the database in the same transaction that records it, after the file is on disk. The chain continues.
    """
    return asyncio.run(_rotate(current(), output, before))


async def _rotate(options: Options, output: Path, before: str) -> int:
    from toolreeve.cli.record import open_journal
    from toolreeve.record.archive import MOST_EARLIER, ROTATED, rotate
    from toolreeve.record.audit import Audit
    from toolreeve.record.chain import ChainError

    until = _parse_filter({"until": before}).until or 0.0
    async with open_journal(options) as (store, journal):
        head = await _write_archive(options, store, output, until, ("intact",))
        if head is None:
            return ExitStatus.TAMPERED
        body = _archive_body(output, head) | {"earlier": (await _archive_heads(Audit(store)))[:MOST_EARLIER]}
        try:
            await journal.note_with(ROTATED, body, lambda chain: rotate(chain, head))
        except ChainError as problem:
            output.unlink()
            raise ToolError(ErrorCode.AUDIT_ERROR, f"not rotated: {problem}") from None
    _print_archive(options, body, f"records up to {head.seq} moved to {output}")
    return ExitStatus.OK


async def _write_archive(
    options: Options, store: "Store", output: Path, until: float, states: tuple[str, ...]
) -> "Head | None":
    """The end of the archive, which is on disk; None if the record is not in one of these states."""
    from toolreeve.core.atomic import sync_directory
    from toolreeve.record.archive import write_archive
    from toolreeve.record.audit import Audit

    verified = await Audit(store).verify()
    if verified.state not in states:
        _print_verification(options, verified)
        note("not archived: an archive of this record could not be verified")
        return None
    with _new_file(output) as stream:
        try:
            head = await store.read_chain(lambda chain: write_archive(chain, stream, until))
            stream.flush()
            os.fsync(stream.fileno())
            sync_directory(output.absolute().parent)
        except BaseException:
            output.unlink()
            raise
    return head


async def _archive_heads(log: "Audit") -> list[str]:
    """The ends of the archives that the record knows."""
    from toolreeve.record.archive import ARCHIVED, ROTATED, known_heads
    from toolreeve.record.audit import Filter

    found = [each for kind in (ROTATED, ARCHIVED) for each in await log.list(Filter(kind=kind), limit=10_000)]
    return known_heads(each.body for each in found)


def _archive_body(output: Path, head: "Head") -> dict[str, Any]:
    return {"file": str(output.absolute()), "last": head.seq, "head": head.hash.hex(), "user": os_user_name()}


def _print_archive(options: Options, body: Mapping[str, Any], done: str) -> None:
    if options.json:
        print_json(body)
    else:
        print_text(f"{done}\nhead {body['head']}")


@audit.command()
@click.option("--reason", default="", help="The reason, which is recorded.")
def repair(reason: str) -> int:
    """Make a damaged record continue, and record what was damaged. Nothing is removed.

    A missing checkpoint or identity is replaced. What `verify` finds wrong in the chain now stays recorded, and is a
    problem again if it changes. Records that were edited or removed do not come back.
    """
    return asyncio.run(_repair(current(), reason))


async def _repair(options: Options, reason: str) -> int:
    from toolreeve.cli.record import open_journal
    from toolreeve.config.xdg import DATABASE
    from toolreeve.record.audit import Audit
    from toolreeve.record.repair import begin_repair, to_bodies
    from toolreeve.record.verify import REPAIRED

    async with open_audit(options) as found:
        if found is None or (await found.verify()).ok:
            note("nothing to repair")
            return ExitStatus.OK
    who = {"user": os_user_name(), "reason": reason}
    await begin_repair(Path(options.configuration().settings.state.dir) / DATABASE, who, time.time())
    async with open_journal(options) as (store, journal):
        before = await Audit(store).verify()
        for body in to_bodies(before):
            await journal.note(REPAIRED, body | who)
        return _report(options, await Audit(store).verify())
