"""The hash chain in SQLite: all its statements (`record.chain.ChainStore`).

It works on the connection of the transaction that it is made for, and does not outlive it.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toolreeve.record.archive import rotations
from toolreeve.record.chain import GENESIS, HIGHEST, ChainError, Head, Row, StoredRow, WitnessedRecord
from toolreeve.record.sql.statements import OPEN_INTENTS

CHUNK = 250
ROWS_AT_ONCE = 500
PLACES = "(?, ?, ?, ?, ?)"


class SqliteChain:
    __slots__ = ("connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def stored_head(self) -> Head | None:
        row = self.connection.execute("SELECT seq, CAST(hash AS BLOB) FROM checkpoint WHERE id = 1").fetchone()
        return None if row is None else Head(*row)

    def next_head(self) -> Head:
        head = self.stored_head()
        if head is None:
            raise ChainError("the checkpoint has been removed from the database; run `toolreeve audit verify`")
        (taken,) = self.connection.execute("SELECT max(seq) FROM audit").fetchone()
        return Head(max(head.seq, taken or 0), head.hash)

    def append(self, rows: Sequence[Row], head: Head) -> None:
        """Many rows in one statement: sqlite3 releases and reacquires the GIL once per statement, and concurrent calls
        would otherwise wait for it once per row."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            chunk = rows[start : start + ROWS_AT_ONCE]
            values = ", ".join([PLACES] * len(chunk))
            self.connection.execute(
                f"INSERT INTO audit (seq, call_id, kind, body, hash) VALUES {values}",  # noqa: S608 - placeholders only
                [value for row in chunk for value in row],
            )
        self.connection.execute("UPDATE checkpoint SET seq = ?, hash = ? WHERE id = 1", (head.seq, head.hash))

    def rows(self, after: int | None = None, until: int | None = None) -> Iterator[Sequence[StoredRow]]:
        columns = ("call_id", "kind", "body", "hash")
        plain = ", ".join(f"CAST({column} AS BLOB)" for column in columns)
        bounds = (_LOWEST if after is None else after, -_LOWEST - 1 if until is None else until)
        wanted = "seq > ? AND seq <= ?" if after is not None else "seq >= ? AND seq <= ?"
        cursor = self.connection.execute(f"SELECT seq, {plain} FROM audit WHERE {wanted} ORDER BY seq", bounds)  # noqa: S608
        while chunk := cursor.fetchmany(CHUNK):
            yield chunk

    def head_at(self, seq: int) -> Head | None:
        query = "SELECT seq, CAST(hash AS BLOB) FROM audit WHERE seq <= ? ORDER BY seq DESC LIMIT 1"
        row = self.connection.execute(query, (seq,)).fetchone()
        return None if row is None else Head(*row)

    def reopener(self) -> Callable[[], contextlib.AbstractContextManager["SqliteChain"]]:
        """A reader of its own, which may see later records."""
        path = next(path for _, name, path in self.connection.execute("PRAGMA database_list") if name == "main")
        return partial(_reopened, Path(path))

    def hash_at(self, seq: int) -> bytes | None:
        if seq == 0:
            return GENESIS
        row = self.connection.execute("SELECT CAST(hash AS BLOB) FROM audit WHERE seq = ?", (seq,)).fetchone()
        if row is None:  # moved to an archive, perhaps; the witness may not have seen a later one yet
            return next((head.hash for head in rotations(self) if head.seq == seq), None)
        found: bytes = row[0]
        return found

    def last_time(self, seq: int) -> Any:
        row = self.connection.execute(_LAST_TIME, (seq,)).fetchone()
        return None if row is None else row[0]

    def open_intents(self, after: int, until: int = HIGHEST) -> Sequence[tuple[str, bytes]]:
        return self.connection.execute(OPEN_INTENTS, (after, until)).fetchall()

    def first(self) -> int:
        (found,) = self.connection.execute("SELECT min(seq) FROM audit").fetchone()
        return 1 if found is None else found

    def bodies(self, kind: str) -> Sequence[bytes]:
        query = "SELECT CAST(body AS BLOB) FROM audit WHERE kind = ? ORDER BY seq DESC"
        return [body for (body,) in self.connection.execute(query, (kind,))]

    def remove_through(self, seq: int) -> None:
        self.connection.execute("DELETE FROM audit WHERE seq <= ?", (seq,))

    def restore_checkpoint(self) -> bool:
        last = "SELECT 1, seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
        return self.connection.execute(f"INSERT OR IGNORE INTO checkpoint {last}").rowcount > 0

    def restore_identity(self) -> bool:
        query = "INSERT OR IGNORE INTO witness (id, identity) VALUES (1, randomblob(16))"
        return self.connection.execute(query).rowcount > 0

    def witnessed(self) -> WitnessedRecord | None:
        if not self.connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'witness'").fetchone():
            return None
        query = "SELECT CAST(identity AS BLOB), since, synced FROM witness WHERE id = 1"
        row = self.connection.execute(query).fetchone()
        if row is None:
            raise ChainError("the identity was removed from the database; run `toolreeve audit verify`")
        return WitnessedRecord(*row)

    def set_witnessed(self, seq: int) -> None:
        self.connection.execute("UPDATE witness SET since = coalesce(since, ?), synced = ?", (seq, seq))

    def set_synced(self, seq: int) -> None:
        self.connection.execute("UPDATE witness SET synced = max(synced, ?)", (seq,))

    def empty_log(self) -> None:
        self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self.connection.rollback()
            raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        try:
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                self.connection.execute("COMMIT")
        except sqlite3.DatabaseError as problem:
            raise ChainError(str(problem)) from problem


@contextlib.contextmanager
def _reopened(path: Path) -> Iterator[SqliteChain]:
    from toolreeve.record.sqlite.database import open_reader

    with contextlib.closing(open_reader(path)) as connection:
        chain = SqliteChain(connection)
        with chain.snapshot():
            yield chain


_LOWEST = -(2**63)
_LAST_TIME = """
    SELECT CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.ts') END
    FROM audit WHERE seq <= ? ORDER BY seq DESC LIMIT 1
"""
