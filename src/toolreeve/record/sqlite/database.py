"""SQLite connections: private to their owner, durable at commit, migrated.

A file that cannot be used is refused with the reason and the remedy; it is never replaced, emptied or "repaired".
"""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from toolreeve.record.engine import StoreError
from toolreeve.record.sqlite.schema import MIGRATIONS

BUSY_TIMEOUT = 30.0
WAL_BYTES = 64 * 1024 * 1024


class SqliteConnection(sqlite3.Connection):
    """A write transaction has the whole file: it needs no locks. Other processes poll."""

    labels = "group_concat(DISTINCT CASE WHEN {} THEN json_extract(CAST(body AS TEXT), '$.labels') END)"

    def lock(self, name: str) -> None: ...

    def announce(self, channel: str) -> None: ...


_OPTIONS: dict[str, Any] = {
    "timeout": BUSY_TIMEOUT,
    "isolation_level": None,
    "check_same_thread": False,
    "factory": SqliteConnection,
}


def open_writer(path: Path) -> SqliteConnection:
    """A connection that commits durably. Creates or upgrades the file. Raises StoreError."""
    try:
        _create_private(path)
        connection: SqliteConnection = sqlite3.connect(path, **_OPTIONS)
    except (OSError, sqlite3.Error) as problem:
        raise _unusable(path, problem) from problem
    try:
        _prepare(connection, path)
    except sqlite3.Error as problem:
        connection.close()
        raise _unusable(path, problem) from problem
    except StoreError:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> SqliteConnection:
    """A connection that cannot write, also while another process does. Raises StoreError."""
    if not path.exists():
        raise StoreError(f"{path} does not exist: nothing has been recorded there yet")
    try:
        return _connect_reading(path, "mode=ro")
    except sqlite3.OperationalError as problem:
        # A WAL database needs its side files; in a read-only directory only a cleanly closed one can be read.
        if path.with_name(path.name + "-wal").exists():
            raise _unusable(path, problem) from problem
    except sqlite3.Error as problem:
        raise _unusable(path, problem) from problem
    try:
        return _connect_reading(path, "immutable=1")
    except sqlite3.Error as problem:
        raise _unusable(path, problem) from problem


def _connect_reading(path: Path, how: str) -> SqliteConnection:
    uri = f"{path.absolute().as_uri()}?{how}"
    connection: SqliteConnection = sqlite3.connect(uri, uri=True, **_OPTIONS)
    try:
        connection.execute("PRAGMA query_only = ON")
        _refuse_newer(path, _version(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _create_private(path: Path) -> None:
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    _refuse_newer(path, _version(connection))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    if _version(connection) < len(MIGRATIONS):
        _migrate(connection, path)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply all missing migrations in one transaction; another process may have been faster."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        _refuse_newer(path, version)
        for migration in MIGRATIONS[version:]:
            for statement in migration.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.rollback()
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _refuse_newer(path: Path, version: int) -> None:
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer Toolreeve (schema {version}; this one knows up to {len(MIGRATIONS)})."
            " Upgrade toolreeve, or choose another state directory."
        )


def _unusable(path: Path, problem: Exception) -> StoreError:
    reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    if isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, sqlite3.OperationalError):
        remedy = "It is damaged or not a Toolreeve database: move it away (keep it as evidence) and start again."
    else:
        remedy = "Check the permissions and free space of its directory, or choose another state directory (state.dir)."
    return StoreError(f"{path} cannot be used: {reason}. {remedy}")
