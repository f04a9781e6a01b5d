"""Former contents of files in PostgreSQL (`record.undo.ContentStore`).

In pieces of a megabyte, so that any gateway with the same workspace can undo what another one changed.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from toolreeve.record.sql.connection import SqlConnection

if TYPE_CHECKING:
    from toolreeve.record.postgres.engine import PostgresEngine

PIECE = 1024 * 1024


class PostgresContents:
    """The clock is that of the database. A content without references is safe from pruning for an hour."""

    def __init__(self, engine: "PostgresEngine") -> None:
        self._engine = engine
        self.fresh_bytes = 0

    def save(self, descriptor: int) -> str:
        pieces = list(_pieces(descriptor))
        digest = _digest(pieces)

        def write(database: SqlConnection) -> None:
            if not database.execute(_TOUCH, (digest,)).rowcount:
                database.executemany(_ADD, [(digest, number, piece) for number, piece in enumerate(pieces)])

        self._engine.transact_blocking(write)
        self.fresh_bytes += sum(map(len, pieces))
        return digest

    def load(self, digest: str) -> bytes | None:
        query = "SELECT body FROM contents WHERE digest = ? ORDER BY piece"
        pieces = [piece for (piece,) in self._read(query, digest)]
        return b"".join(pieces) if pieces and _digest(pieces) == digest else None

    def has(self, digest: str) -> bool:
        return bool(self._read("SELECT 1 FROM contents WHERE digest = ? LIMIT 1", digest))

    def sizes(self) -> dict[str, int]:
        return dict(self._read("SELECT digest, CAST(sum(octet_length(body)) AS bigint) FROM contents GROUP BY digest"))

    def prune(self, wanted: Collection[str]) -> None:
        self.fresh_bytes = 0
        self._engine.transact_blocking(lambda database: database.execute(_PRUNE, (list(wanted),)) and None)

    def _read(self, query: str, *values: str) -> list[Any]:
        return self._engine.read_blocking(lambda database: database.execute(query, values).fetchall())


def _pieces(descriptor: int) -> Iterator[bytes]:
    """An empty file is one empty piece."""
    yield (piece := os.pread(descriptor, PIECE, 0))
    offset = len(piece)
    while piece := os.pread(descriptor, PIECE, offset):
        yield piece
        offset += len(piece)


def _digest(pieces: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


_TOUCH = "UPDATE contents SET at = now() WHERE digest = ?"
_ADD = """
    INSERT INTO contents (digest, piece, body) VALUES (?, ?, ?) ON CONFLICT (digest, piece) DO UPDATE SET at = now()
"""
_PRUNE = "DELETE FROM contents WHERE at < now() - interval '1 hour' AND digest <> ALL(CAST(? AS text[]))"
