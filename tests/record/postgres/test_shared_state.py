"""Values that several gateways change: no change is lost."""

import asyncio
from pathlib import Path

from tests.record.postgres.server import PostgresServer
from toolreeve.record.store import open_store


async def test_changes_that_come_at_once_all_count(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    stores = [open_store(tmp_path / name / "x.db", url) for name in ("a", "b")]
    for store in stores:
        await store.start()
    states = [store.shared_state for store in stores]

    def count(value: int | None) -> tuple[int, int]:
        return (value or 0) + 1, (value or 0) + 1

    answers = await asyncio.gather(*(state.change("k", count) for state in states if state for _ in range(50)))

    assert sorted(answers) == list(range(1, 101))
    for store in stores:
        await store.close()
