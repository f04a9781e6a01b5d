"""Access of commands to the record: opened for reading or writing; times."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from toolreeve.cli.options import Options

if TYPE_CHECKING:
    from toolreeve.record.audit import Audit
    from toolreeve.record.journal import Journal
    from toolreeve.record.store import RecordStore


@asynccontextmanager
async def open_journal(options: Options) -> "AsyncIterator[tuple[RecordStore, Journal]]":
    from toolreeve.core.secrets.redactor import Redactor
    from toolreeve.record.journal import Journal
    from toolreeve.runtime.store import configured_store

    configuration = options.configuration()
    async with configured_store(configuration) as store:
        journal = Journal(store, Redactor(configuration.secrets), time.time)
        await journal.start()
        try:
            yield store, journal
        finally:
            await journal.stop()


@asynccontextmanager
async def open_audit(options: Options) -> "AsyncIterator[Audit | None]":
    """The record, read-only; None if nothing was ever recorded."""
    from toolreeve.record.audit import Audit
    from toolreeve.record.witness import Witness
    from toolreeve.runtime.store import configured_store

    store = configured_store(options.configuration(), read_only=True)
    if not store.has_begun and not Witness(store.path).path.exists():
        yield None
        return
    async with store:
        yield Audit(store)


def create_private_file(path: Path) -> IO[bytes]:
    """Private to its owner: arguments of calls are confidential."""
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    except OSError as problem:
        raise click.UsageError(f"{path} cannot be written: {problem.strerror}") from None


def format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
