"""Access of commands to the record: the journal, the user's name, times."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.cli.options import Options

if TYPE_CHECKING:
    from toolreeve.record.journal import Journal
    from toolreeve.record.store import Store


@asynccontextmanager
async def open_journal(options: Options) -> "AsyncIterator[tuple[Store, Journal]]":
    from toolreeve.config.xdg import DATABASE
    from toolreeve.core.secrets.redactor import Redactor
    from toolreeve.record.journal import Journal
    from toolreeve.record.store import Store

    configuration = options.configuration()
    store = Store(Path(configuration.settings.state.dir) / DATABASE)
    journal = Journal(store, Redactor(configuration.secrets), time.time)
    await store.start()
    try:
        await journal.start()
        try:
            yield store, journal
        finally:
            await journal.stop()
    finally:
        await store.close()


def format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
