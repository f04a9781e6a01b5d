"""Commands that read, export and verify the record of calls.

All but `accept` open it so that nothing can be written.
"""

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import answering, note, say, say_json, say_table
from toolreeve.core import json
from toolreeve.core.errors import ExitStatus

if TYPE_CHECKING:
    from toolreeve.record.audit import Audit, AuditRecord, Filter
    from toolreeve.record.verify import Verification

FORMATS = ("jsonl", "csv", "parquet")
Answer = Callable[..., Any]


@click.group(cls=CliGroup)
def audit() -> None:
    """Read, export and verify the record of calls."""


def _filters(command: Answer) -> Answer:
    """The options that say which records."""
    for name, meaning in (
        ("--until", "Records before this time."),
        ("--since", "Records from this time on: ISO 8601, or seconds since the epoch."),
        ("--success", "true or false."),
        ("--code", "Calls that failed with this code."),
        ("--user", "Calls of this user."),
        ("--session", "Calls of this session."),
        ("--tool", "Calls of this tool."),
        ("--kind", "Records of this kind: call, intent, …"),
    ):
        command = click.option(name, help=meaning)(command)
    return command


def _wanted(words: dict[str, str | None], **defaults: str) -> "Filter":
    from toolreeve.record.audit import Filter

    return Filter.parse(defaults | {name: word for name, word in words.items() if word is not None})


@asynccontextmanager
async def _open(invocation: Options) -> "AsyncIterator[Audit | None]":
    """The record, opened so that nothing can be written; None where nothing was ever recorded."""
    from toolreeve.config.xdg import DATABASE
    from toolreeve.record.audit import Audit
    from toolreeve.record.store import Store
    from toolreeve.record.witness import Witness

    path = Path(invocation.configuration().settings.state.dir) / DATABASE
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
@click.option("--last", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many, newest first.")
@_filters
def list_(last: int, **words: str | None) -> int:
    """List records, newest first: how calls ended, unless another kind is asked for."""
    records = asyncio.run(_list(current(), _wanted(words, kind="call"), last))
    if current().json:
        say_json([record.to_dict() for record in records])
    else:
        say_table(current(), ("time", "call", "tool", "decision", "outcome", "ms"), list(map(_row, records)))
    return ExitStatus.OK


async def _list(invocation: Options, wanted: "Filter", last: int) -> "Sequence[AuditRecord]":
    async with _open(invocation) as found:
        return [] if found is None else await found.list(wanted, limit=last)


def _row(record: "AuditRecord") -> tuple[str, ...]:
    told = record.to_dict()
    decision = told.get("decision")
    effect = decision.get("effect", "") if isinstance(decision, dict) else ""
    outcome = told.get("code") or ("ok" if told.get("success") else record.kind)
    cells = (told["timestamp"], record.call_id, told.get("tool"), effect, outcome, told.get("duration_ms"))
    return tuple("" if cell is None else str(cell) for cell in cells)


@audit.command()
@click.argument("call_id", metavar="CALL")
def show(call_id: str) -> int:
    """Show all records of one call. The beginning of its id is enough, if no other begins so."""
    records = asyncio.run(_show(current(), call_id))
    if not records:
        note(f"no call is recorded as {call_id!r}, or several begin so")
        return ExitStatus.NOT_FOUND
    told = [record.to_dict() for record in records]
    if current().json:
        say_json(told)
    else:
        for each in told:
            say(json.pretty(each))
    return ExitStatus.OK


async def _show(invocation: Options, call_id: str) -> "Sequence[AuditRecord]":
    async with _open(invocation) as found:
        return [] if found is None else await found.show(call_id)


@audit.command()
@click.option("--format", "form", type=click.Choice(FORMATS), default="jsonl", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="A new file; standard output if not named.")
@_filters
def export(form: str, output: Path | None, **words: str | None) -> int:
    """Write records, oldest first, as JSON Lines, CSV or Parquet."""
    wanted = _wanted(words)
    if output is None:
        with answering() as stream:
            asyncio.run(_export(current(), form, stream, wanted))
    else:
        with _new_file(output) as stream:
            count = asyncio.run(_export(current(), form, stream, wanted))
        if current().json:
            say_json({"file": str(output), "format": form, "records": count})
        else:
            note(f"{count} records written to {output}")
    return ExitStatus.OK


def _new_file(path: Path) -> IO[bytes]:
    """Readable by its owner alone: arguments of calls are private."""
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    except OSError as problem:
        raise click.UsageError(f"{path} cannot be written: {problem.strerror}") from None


async def _export(invocation: Options, form: str, stream: IO[bytes], wanted: "Filter") -> int:
    async with _open(invocation) as found:
        return 0 if found is None else await found.export(form, stream, wanted)


@audit.command()
@click.option("--expect", metavar="HASH", help="A head hash that was kept elsewhere.")
def verify(expect: str | None) -> int:
    """Check that no record was edited, removed, inserted, moved or lost.

    Exits with 7 if one was changed or the witness is not to be believed, and with 8 if acknowledged records are missing
    from the end and nothing else is wrong.
    """
    return asyncio.run(_verify(current(), expect))


async def _verify(invocation: Options, expect: str | None) -> int:
    from toolreeve.record.verify import Verification

    async with _open(invocation) as found:
        if found is None and expect is None:
            _tell_verified(invocation, Verification())
            return ExitStatus.OK
        if found is None:
            note("nothing is recorded, but a head was expected")
            return ExitStatus.TAMPERED
        verified = await found.verify(expect=expect)
    _tell_verified(invocation, verified)
    return {"intact": ExitStatus.OK, "lost": ExitStatus.LOST}.get(verified.state, ExitStatus.TAMPERED)


def _tell_verified(invocation: Options, verified: "Verification") -> None:
    head = verified.head.hash.hex()
    if invocation.json:
        say_json(
            {
                "ok": verified.ok,
                "state": verified.state,
                "records": verified.records,
                "head": head,
                "witnessed_since": verified.since,
                "problems": [str(problem) for problem in verified.problems],
                "findings": [problem.to_dict() for problem in verified.problems],
                "unlisted": verified.unlisted,
                "accepted_gaps": sorted(verified.accepted & set(verified.gaps)),
            }
        )
    elif verified.ok:
        say(f"{verified.records} records, the chain is intact\nhead {head}")
        for seq in sorted(verified.accepted & set(verified.gaps)):
            say(f"accepted gap: record {seq}: {verified.gaps[seq].get('message')}")
        if verified.since:
            say(f"no witness before record {verified.since}")
    else:
        say("\n".join(map(str, verified.problems)) + (f"\nand {verified.unlisted} more" if verified.unlisted else ""))
        say(f"the record is {verified.state}")


@audit.command()
@click.argument("record", type=click.IntRange(min=1), required=False)
@click.option("--reason", default="", help="Why, in your words; it is recorded.")
def accept(record: int | None, reason: str) -> int:
    """Accept a gap that `verify` tells of, by the number of its record. The gap stays recorded.

    Without a number, record what the witness gives away now and list the gaps that are not accepted.
    """
    return asyncio.run(_accept(current(), record, reason))


async def _accept(invocation: Options, record: int | None, reason: str) -> int:
    from toolreeve.cli.approvals import open_journal
    from toolreeve.record.audit import Audit

    async with open_journal(invocation) as (store, journal):
        verified = await Audit(store).verify()
        waiting = {problem.gap: problem for problem in verified.problems if problem.gap is not None}
        if record in waiting:
            await journal.accept(record, user=getpass.getuser(), reason=reason)
            say(f"accepted: {waiting[record].text}")
            return ExitStatus.OK
    for problem in waiting.values():
        say(str(problem))
    if not waiting:
        note("no gap waits to be accepted")
    return ExitStatus.OK if record is None else ExitStatus.NOT_FOUND
