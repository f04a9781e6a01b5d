"""A malformed database: what can be read moves into a new one, and the record says what is missing."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from tests.world import World
from toolreeve.record.sqlite.salvage import salvage

CALLS = 60


@pytest.fixture
def database(world: World) -> Path:
    async def record() -> None:
        async with world.reeve() as reeve:
            for number in range(CALLS):
                await reeve.call("calculate", {"expression": f"{number} + {'1' * 200}"})

    asyncio.run(record())
    path = world.state / "toolreeve.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def damage(path: Path, table: str = "audit") -> None:
    """Overwrite the middle pages of a table."""
    connection = sqlite3.connect(path)
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        interior = file.read(size)
        children = int.from_bytes(interior[3:5])
        assert interior[0] == 5, "the table is too small to be damaged in the middle"
        cell = int.from_bytes(interior[12 + children // 2 * 2 :][:2])
        page = int.from_bytes(interior[cell : cell + 4])
        file.seek((page - 1) * size)
        file.write(os.urandom(size))


def test_a_sound_database_stays_as_it_is(database: Path) -> None:
    before = database.read_bytes()

    assert salvage(database, "now") is None
    assert database.read_bytes() == before


def test_all_rows_but_those_of_the_damaged_page_are_copied(database: Path) -> None:
    damage(database)
    malformed = database.read_bytes()

    found = salvage(database, "now")

    assert found is not None
    assert found.kept.read_bytes() == malformed
    assert CALLS / 2 < found.rows["audit"] < CALLS
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        numbers = [number for (number,) in connection.execute("SELECT seq FROM audit ORDER BY seq")]
    assert (numbers[0], numbers[-1]) == (1, CALLS)
