"""`toolreeve audit verify|accept|archive|rotate|repair`: keep the record whole."""

import asyncio
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import count, note, print_json, print_text
from toolreeve.cli.record import create_private_file, open_audit, open_journal
from toolreeve.config.os_user import os_user_name
from toolreeve.core.errors import ErrorCode, ExitStatus, ToolError

if TYPE_CHECKING:
    from toolreeve.record.audit import Audit
    from toolreeve.record.chain import Head
    from toolreeve.record.sqlite.salvage import Salvaged
    from toolreeve.record.store import RecordStore
    from toolreeve.record.verify import Verification

_HASH = re.compile(r"[0-9a-fA-F]{64}")


@click.command(cls=CliCommand)
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
    from toolreeve.record.verify import LOST

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
        which = "the end of the record" if verified.state == LOST else "the record"
        print_text(f"{which} is {verified.state}")


@click.command(cls=CliCommand)
@click.argument("record", type=click.IntRange(min=1), required=False)
@click.option("--reason", default="", help="The reason, which is recorded.")
def accept(record: int | None, reason: str) -> int:
    """Accept a gap that `verify` reports, by the number of its record. The gap stays recorded.

    Without a number, record the gaps that the witness shows now, and list those that are not accepted.
    """
    return asyncio.run(_accept(current(), record, reason))


async def _accept(options: Options, record: int | None, reason: str) -> int:
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


@click.command(cls=CliCommand)
@click.argument("output", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--before", metavar="TIME", default="0s", help="Up to the first record from this time on; default: now.")
def archive(output: Path, before: str) -> int:
    """Copy the oldest records to a new file that `audit verify --file` can verify.

    That it was done, and where the archive ends, is recorded. No record is removed.
    """
    return asyncio.run(_archive(current(), output, before))


async def _archive(options: Options, output: Path, before: str) -> int:
    from toolreeve.record.archive import ARCHIVED
    from toolreeve.record.audit import Filter

    until = Filter.parse({"until": before}).until or 0.0
    async with open_journal(options) as (store, journal):
        head = await _write_archive(options, store, output, until, ("intact", "lost"))
        if head is None:
            return ExitStatus.TAMPERED
        body = _archive_body(output, head)
        await journal.note(ARCHIVED, body)
    _print_archive(options, body, f"records up to {head.seq} copied to {output}")
    return ExitStatus.OK


@click.command(cls=CliCommand)
@click.argument("output", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--before", metavar="TIME", default="30d", show_default=True, help="Up to the first record from then on.")
def rotate(output: Path, before: str) -> int:
    """Move the oldest records to a new file that `audit verify --file` can verify.

    They leave the database in the same transaction that records it, after the file is on disk. The chain continues.
    """
    return asyncio.run(_rotate(current(), output, before))


async def _rotate(options: Options, output: Path, before: str) -> int:
    from toolreeve.record.archive import MOST_EARLIER, ROTATED, rotate
    from toolreeve.record.audit import Audit, Filter
    from toolreeve.record.chain import ChainError

    until = Filter.parse({"until": before}).until or 0.0
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
    options: Options, store: "RecordStore", output: Path, until: float, states: tuple[str, ...]
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
    with create_private_file(output) as stream:
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


@click.command(cls=CliCommand)
@click.option("--reason", default="", help="The reason, which is recorded.")
def repair(reason: str) -> int:
    """Make a damaged record continue, and record what was damaged. Nothing is removed.

    Of a malformed database, all that can be read moves into a new one, and the old one is kept beside it: stop other
    processes that use it first. A missing checkpoint or identity is replaced. What `verify` finds wrong in the chain
    now stays recorded, and is a problem again if it changes. Records that were edited or removed do not come back.
    """
    return asyncio.run(_repair(current(), reason))


def _salvage(options: Options) -> "Salvaged | None":
    from toolreeve.config.xdg import DATABASE
    from toolreeve.record.sqlite.salvage import salvage

    state = options.configuration().settings.state
    if state.url:
        return None
    return salvage(Path(state.dir) / DATABASE, time.strftime("%Y%m%dT%H%M%S"))


async def _repair(options: Options, reason: str) -> int:
    from toolreeve.record.audit import Audit
    from toolreeve.record.repair import begin_repair, to_bodies
    from toolreeve.record.verify import REPAIRED
    from toolreeve.runtime.store import configured_store

    who: dict[str, Any] = {"user": os_user_name(), "reason": reason}
    if (salvaged := _salvage(options)) is not None:
        who["salvaged"] = {"kept": str(salvaged.kept), "rows": salvaged.rows}
        read = salvaged.rows.get("audit", 0)
        note(f"the database is malformed: {count(read, 'record')} could be read; it is kept as {salvaged.kept}")
    async with open_audit(options) as found:
        if salvaged is None and (found is None or (await found.verify()).ok):
            note("nothing to repair")
            return ExitStatus.OK
    await begin_repair(configured_store(options.configuration()), who, time.time())
    async with open_journal(options) as (store, journal):
        before = await Audit(store).verify()
        for body in to_bodies(before):
            await journal.note(REPAIRED, body | who)
        return _report(options, await Audit(store).verify())
