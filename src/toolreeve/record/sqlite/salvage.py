"""Salvage: copies the readable part of a malformed database.

The malformed file is kept as it is. Which records of the chain are missing shows when the new one is verified.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from toolreeve.record.sqlite.database import SqliteConnection, open_writer

MOST_PROBED = 1_000_000
_SIDE_FILES = ("", "-wal", "-shm")


class Salvaged(NamedTuple):
    """Where the malformed database is now, and how many rows of each table were copied."""

    kept: Path
    rows: dict[str, int]


def salvage(path: Path, stamp: str) -> Salvaged | None:
    """Replace a malformed database by what can be read of it; None if it is sound, or missing. No other process may
    use it. Raises StoreError, OSError."""
    if not path.exists() or _is_sound(path):
        return None
    new = path.with_name(f"{path.name}.salvaged")
    for ending in _SIDE_FILES:
        new.with_name(new.name + ending).unlink(missing_ok=True)
    target = open_writer(new)
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        rows = _copy_all(source, target)
        target.execute("PRAGMA journal_mode = DELETE")  # all of it is in the one file that is moved
    finally:
        source.close()
        target.close()
    kept = path.with_name(f"{path.name}.malformed-{stamp}")
    for ending in _SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(kept.with_name(kept.name + ending))
    new.replace(path)
    return Salvaged(kept, rows)


def _is_sound(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok")
    except sqlite3.OperationalError:  # locked or unreadable, which is no damage
        raise
    except sqlite3.DatabaseError:
        return False


def _copy_all(source: sqlite3.Connection, target: SqliteConnection) -> dict[str, int]:
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    tables = [str(name) for (name,) in target.execute(names)]
    target.execute("BEGIN IMMEDIATE")
    copied = {table: _copy(source, target, table) for table in tables}
    target.execute("COMMIT")
    return copied


def _copy(source: sqlite3.Connection, target: SqliteConnection, table: str) -> int:
    """A table of which nothing can be read keeps what a new database has in it."""
    columns = [str(row[1]) for row in target.execute(f"PRAGMA table_info({table})")]
    insert = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - our own names
    count = 0
    select = f"SELECT rowid, {', '.join(columns)} FROM {table}"  # noqa: S608
    for row in _rows(source, select):
        if not count:
            target.execute(f"DELETE FROM {table}")  # noqa: S608
        with contextlib.suppress(sqlite3.IntegrityError):  # of a row that was misread
            target.execute(insert, row[1:])
            count += 1
    return count


def _rows(source: sqlite3.Connection, select: str) -> Iterator[tuple[Any, ...]]:
    """From the front and from the back as far as it can be read, and one by one between."""
    first = last = None
    for row in _until_damage(source, f"{select} ORDER BY rowid"):
        first = row[0]
        yield row
    for row in _until_damage(source, f"{select} ORDER BY rowid DESC"):
        if first is not None and row[0] <= first:
            return
        last = row[0]
        yield row
    if first is None or last is None:
        return
    for number in range(first + 1, min(last, first + MOST_PROBED)):
        yield from _until_damage(source, f"{select} WHERE rowid = {number}")


def _until_damage(source: sqlite3.Connection, select: str) -> Iterator[tuple[Any, ...]]:
    with contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        yield from source.execute(select)
