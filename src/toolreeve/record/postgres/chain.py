"""The hash chain in PostgreSQL: its statements (`record.chain.ChainStore`).

Whoever continues the chain has locked the checkpoint: numbers follow the order of commits.
"""

import contextlib
import json as lenient
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL

from toolreeve.core import json
from toolreeve.record.archive import rotations
from toolreeve.record.audit import BLOCK_BITS
from toolreeve.record.chain import GENESIS, HIGHEST, ChainError, Entry, Head, Row, StoredRow, WitnessedRecord, link
from toolreeve.record.postgres.connection import translate
from toolreeve.record.sql.statements import OPEN_INTENTS

CHUNK = 2_000
_TEXTS = ("tool", "session", "user", "workspace", "code")
_PUT = "SELECT put(0::smallint, %s, %s::text[], %s::text[], %s::bytea[], %s::bytea[], {fields})"
_APPEND = "SELECT * FROM append(%s, %s::bigint, %s::text[], %s::text[], %s::bytea[], {fields})"
_FIELDS = "%s::float8[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[]"
PUT = _PUT.format(fields=_FIELDS)
APPEND = _APPEND.format(fields=_FIELDS)


def columns_of(entries: Sequence[Entry]) -> list[list[Any]]:
    """Call ids, kinds and bodies, and the fields of the bodies that filters use, each as a column."""
    columns: list[list[Any]] = [[*column] for column in zip(*entries, strict=True)]
    bodies = [_fields(body) for _, _, body in entries]
    at = [body.get("ts") for body in bodies]
    columns.append([float(value) if isinstance(value, int | float) else None for value in at])
    columns += [[_text(body.get(name)) for body in bodies] for name in _TEXTS]
    columns.append([value if isinstance(value := body.get("success"), bool) else None for body in bodies])
    return columns


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:  # surrogates, which only the other parser takes
        fields = lenient.loads(body)
    return fields if isinstance(fields, dict) else {}


def _text(value: Any) -> str | None:
    return value.encode(errors="replace").decode().replace("\0", "\ufffd") if isinstance(value, str) else None


def relink(entries: Sequence[Entry], last: int, before: bytes) -> bytes:
    """The hash after these entries, of which `last` is the number of the last one."""
    for seq, (call_id, kind, body) in enumerate(entries, last - len(entries) + 1):
        before = link(before, seq, call_id.encode(), kind.encode(), body)
    return before


_BOUNDS = {"after": " AND seq > %(after)s", "until": " AND seq <= %(until)s"}


@contextlib.contextmanager
def _reopened(url: str, snapshot: str, witness: str) -> Iterator["PostgresChain"]:
    with psycopg.connect(url, autocommit=True) as raw:
        chain = PostgresChain(raw, witness)
        with chain.snapshot():
            raw.execute(SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
            yield chain


class PostgresChain:
    """`witness` is the name of this machine's witness; `head` is the checkpoint, if it is known already."""

    def __init__(self, raw: psycopg.Connection, witness: str, head: Head | None = None) -> None:
        self.raw = raw
        self._witness = witness
        self.head = head

    def _one(self, query: str, *values: Any) -> Any:
        return self.raw.execute(query, values, binary=True).fetchone()

    def stored_head(self) -> Head | None:
        if self.head is not None:
            return self.head
        row = self._one("SELECT seq, hash FROM checkpoint WHERE chain = 0")
        return None if row is None else Head(*row)

    def next_head(self) -> Head:
        row = self._one("SELECT seq, hash FROM checkpoint WHERE chain = 0 FOR UPDATE")
        if row is None:
            raise ChainError("the checkpoint has been removed from the database; run `toolreeve audit verify`")
        (taken,) = self._one("SELECT coalesce(max(seq), 0) FROM audit")
        return Head(max(row[0], taken), row[1])

    def append(self, rows: Sequence[Row], head: Head) -> None:
        if rows:
            call_ids, kinds, bodies, *fields = columns_of([(call_id, kind, body) for _, call_id, kind, body, _ in rows])
            hashes = [digest for *_, digest in rows]
            self._one(PUT, rows[0][0] - 1, call_ids, kinds, bodies, hashes, *fields)
        self._one("UPDATE checkpoint SET seq = %s, hash = %s WHERE chain = 0 RETURNING 1", head.seq, head.hash)
        self.head = None

    def rows(self, after: int | None = None, until: int | None = None) -> Iterator[Sequence[StoredRow]]:
        columns = "seq, convert_to(call_id, 'UTF8'), convert_to(kind, 'UTF8'), body, hash"
        bounds = {"after": after, "until": until}
        wanted = "".join(condition for name, condition in _BOUNDS.items() if bounds[name] is not None)
        with self.raw.cursor(name="rows", binary=True) as cursor:
            cursor.execute(f"SELECT {columns} FROM audit WHERE chain = 0{wanted} ORDER BY seq", bounds)  # noqa: S608
            while chunk := cursor.fetchmany(CHUNK):
                yield chunk

    def head_at(self, seq: int) -> Head | None:
        row = self._one("SELECT seq, hash FROM audit WHERE seq <= %s ORDER BY seq DESC LIMIT 1", seq)
        return None if row is None else Head(*row)

    def reopener(self) -> Callable[[], contextlib.AbstractContextManager["PostgresChain"]]:
        (snapshot,) = self._one("SELECT pg_export_snapshot()")
        info = self.raw.info
        url = make_conninfo(info.dsn, **({"password": info.password} if info.password else {}))
        return partial(_reopened, url, snapshot, self._witness)

    def hash_at(self, seq: int) -> bytes | None:
        if seq == 0:
            return GENESIS
        row = self._one("SELECT hash FROM audit WHERE seq = %s", seq)
        if row is None:  # moved to an archive, perhaps; the witness may not have seen a later one yet
            return next((head.hash for head in rotations(self) if head.seq == seq), None)
        return bytes(row[0])

    def last_time(self, seq: int) -> Any:
        row = self._one("SELECT ts FROM audit WHERE seq <= %s ORDER BY seq DESC LIMIT 1", seq)
        return None if row is None else row[0]

    def open_intents(self, after: int, until: int = HIGHEST) -> Sequence[tuple[str, bytes]]:
        return self.raw.execute(translate(OPEN_INTENTS), (after, until)).fetchall()

    def first(self) -> int:
        (found,) = self._one("SELECT min(seq) FROM audit")
        return 1 if found is None else found

    def bodies(self, kind: str) -> Sequence[bytes]:
        query = "SELECT body FROM audit WHERE kind = %s ORDER BY seq DESC"
        return [body for (body,) in self.raw.execute(query, (kind,), binary=True)]

    def remove_through(self, seq: int) -> None:
        """Days that are then empty are dropped as a whole, except the last."""
        days = "SELECT tableoid::regclass::text FROM audit GROUP BY 1 HAVING max(seq) <= %s AND max(day) < current_date"
        for (part,) in self.raw.execute(days, (seq,)).fetchall():
            self.raw.execute(f"DROP TABLE {part}")
        self.raw.execute("DELETE FROM audit WHERE seq <= %s", (seq,))
        self.raw.execute("DELETE FROM audit_blocks WHERE block < (%s + 1) >> %s", (seq, BLOCK_BITS))

    def restore_checkpoint(self) -> bool:
        last = "SELECT 0, seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
        return self.raw.execute(f"INSERT INTO checkpoint {last} ON CONFLICT DO NOTHING").rowcount > 0

    def restore_identity(self) -> bool:
        query = "INSERT INTO identity VALUES (1, uuid_send(gen_random_uuid())) ON CONFLICT DO NOTHING"
        return self.raw.execute(query).rowcount > 0

    def witnessed(self) -> WitnessedRecord | None:
        query = "SELECT identity, since, coalesce(synced, 0) FROM identity LEFT JOIN witness ON name = %s"
        row = self._one(query, self._witness)
        if row is None:
            raise ChainError("the identity was removed from the database; run `toolreeve audit verify`")
        return WitnessedRecord(row[0], row[1], row[2], shared=True)

    def set_witnessed(self, seq: int) -> None:
        query = (
            "INSERT INTO witness AS known (name, since, synced) VALUES (%(name)s, %(seq)s, %(seq)s) ON CONFLICT (name)"
            " DO UPDATE SET since = coalesce(known.since, %(seq)s), synced = %(seq)s"
        )
        self.raw.execute(query, {"name": self._witness, "seq": seq})

    def set_synced(self, seq: int) -> None:
        self.raw.execute("UPDATE witness SET synced = greatest(synced, %s) WHERE name = %s", (seq, self._witness))

    def empty_log(self) -> None:
        """The server keeps its own."""

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with self.raw.transaction():
            yield

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        try:
            with self.raw.transaction():
                self.raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                self.raw.execute("SET LOCAL statement_timeout = 0")
                yield
        except psycopg.Error as problem:
            raise ChainError(str(problem)) from problem
