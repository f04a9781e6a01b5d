"""Migration of the state from the SQLite file to a shared database.

All or nothing: one transaction copies everything, and the copy is verified against the original before it counts.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.audit import Audit
from toolreeve.record.chain import Head
from toolreeve.record.liveness import FileLiveness
from toolreeve.record.sql.connection import SqlConnection
from toolreeve.record.sql.transfer import copy_chain, copy_tables
from toolreeve.record.store import RecordStore, Store
from toolreeve.record.verify import INTACT

MIGRATED = "migrated"


@dataclass(frozen=True, slots=True)
class Migrated:
    records: int
    rows: int
    head: Head


async def migrate_state(path: Path, target: RecordStore) -> Migrated:
    """Copy the SQLite file at `path` into the target, which is started and empty. Raises ToolError."""
    if any(FileLiveness(path).living()):
        raise _refused("a process still uses it; stop every `toolreeve serve`, `mcp` and agent first")
    source = Store(path, read_only=True)
    await source.start()
    try:
        before = await Audit(source).verify()
        if before.state != INTACT:
            raise _refused(f"its record is not intact: {before.problems[0]}. See `toolreeve audit verify`")

        def copy(there: SqlConnection) -> tuple[Head, int]:
            return source.read_blocking(lambda here: _copy(source, here, target, there))

        head, rows = await target.transact(copy)
        await asyncio.to_thread(_copy_contents, source, target)
    finally:
        await source.close()
    after = await Audit(target).verify()
    if (after.records, after.head, after.broken) != (before.records, before.head, []) or head != before.head:
        raise ToolError(ErrorCode.AUDIT_ERROR, f"the copy differs from {path}; do not use it")
    return Migrated(after.records, rows, head)


def _copy(source: Store, here: SqlConnection, target: RecordStore, there: SqlConnection) -> tuple[Head, int]:
    here.execute("BEGIN")
    try:
        return copy_chain(source.chain_of(here), target.chain_of(there)), copy_tables(here, there)
    finally:
        here.execute("COMMIT")


def _copy_contents(source: Store, target: RecordStore) -> None:
    """The former contents of files, for undo. Adding one twice is harmless."""
    kept = source.contents(time.time)
    there = target.contents(time.time)
    for digest in kept.sizes():
        with kept.open(digest) as stream:
            there.save(stream.fileno())


def _refused(why: str) -> ToolError:
    return ToolError(ErrorCode.AUDIT_ERROR, f"the state was not migrated: {why}")
