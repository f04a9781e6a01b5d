"""Batches of records, resent under their number until the database confirms.

If the answer is lost with the connection, the same batch goes again under the same number: the database knows whether
it has it. Nothing is acknowledged on a guess. Where several processes write, the checkpoint is unlocked before the
flush: a second statement of the same pipeline waits until everything committed before it is on disk.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from toolreeve.record.audit import RECORD
from toolreeve.record.chain import ChainError, Entry, Head, Line
from toolreeve.record.jobs import Log
from toolreeve.record.postgres.chain import APPEND, PostgresChain, columns_of, relink
from toolreeve.record.postgres.connection import CHANNEL

logger = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that callers wait for a database that is away."""
_UNLOCK_EARLY = "SET LOCAL synchronous_commit = off"
_FLUSH = "SELECT pg_logical_emit_message(true, 'toolreeve', '')"
_FLUSH_AND_TELL = f"{_FLUSH}, pg_notify('{CHANNEL}{RECORD}', '')"
TELL_SECONDS = 0.05
"""Announcements are serialized by the database, and a listener reads all that is new: few are enough."""
_SKIP = "UPDATE checkpoint SET seq = greatest(seq, (SELECT max(seq) FROM audit)) WHERE chain = 0"
_BATCH = "SELECT batch FROM processes WHERE name = %s"


@dataclass(frozen=True, slots=True)
class Batch:
    number: int
    lines: Sequence[Line]
    entries: Sequence[Entry]


class RefusedBatch(Exception):
    """The database did not take the batch, for certain."""


class BatchWriter:
    """`gateway` is the name of this process in the table of processes, `enter` puts it there again after it was
    declared dead. While `alone`, no other process writes."""

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection],
        *,
        witness: str,
        gateway: str,
        enter: Callable[[int, int], None],
    ) -> None:
        self._connect = connect
        self._witness = witness
        self._gateway = gateway
        self._enter = enter
        self._connection: psycopg.Connection | None = None
        self.alone = True
        self.number = 0
        self._told = 0.0

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def flushed_chain(self) -> PostgresChain:
        """The chain with a head that is on disk: others may have committed it a moment ago, and not flushed it yet."""
        connection = self._connected()
        head = PostgresChain(connection, self._witness).stored_head()
        connection.execute(_FLUSH)
        return PostgresChain(connection, self._witness, head)

    def send(self, batch: Batch, log: Log, *, patience: float) -> PostgresChain:
        """Returns the chain with its new head. Raises RefusedBatch, or psycopg.Error if the outcome is unknown."""
        end = time.monotonic() + patience
        pause = 0.05
        while True:
            try:
                return self._attempt(batch, log)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                self.close()
                if time.monotonic() + pause > end:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 1.0)
            except psycopg.Error as problem:
                self.close()
                self._mend(batch, log, problem)

    def _attempt(self, batch: Batch, log: Log) -> PostgresChain:
        connection = self._connected()
        columns = columns_of(batch.entries)
        with connection.pipeline(), connection.cursor(binary=True) as cursor:
            connection.execute("BEGIN")
            if not self.alone:
                connection.execute(_UNLOCK_EARLY)
            cursor.execute(APPEND, (self._gateway, batch.number, *columns))
            log.note_synced(PostgresChain(connection, self._witness))
            connection.execute("COMMIT")
            if not self.alone:
                is_due = time.monotonic() >= self._told + TELL_SECONDS
                connection.execute(_FLUSH_AND_TELL if is_due else _FLUSH)
                self._told = time.monotonic() if is_due else self._told
            answer: Any = cursor.fetchone()
        last, before, after = answer
        if relink(batch.entries, last, before) != after:
            raise ChainError("the database stored other records than it was given; run `toolreeve audit verify`")
        return PostgresChain(connection, self._witness, Head(last, after))

    def _mend(self, batch: Batch, log: Log, problem: psycopg.Error) -> None:
        """Remove what kept this batch from being written. Raises RefusedBatch if that is not possible."""
        logger.warning("the record: %s", problem)
        match problem.sqlstate:
            case "TR001":
                self._enter(0, batch.number - 1)
            case "TR002":
                self._resume(batch, log)
            case "23505":  # someone else's row has the next number: it keeps it, and the gap stays visible
                self._connected().execute(_SKIP)
            case _ if not self._is_stored(batch):
                raise RefusedBatch(str(problem)) from problem

    def _is_stored(self, batch: Batch) -> bool:
        row = self._connected().execute(_BATCH, (self._gateway,)).fetchone()
        return row is not None and row[0] >= batch.number

    def _resume(self, batch: Batch, log: Log) -> None:
        """The database lost what it had acknowledged. The witness knows what; the gap becomes a record."""
        connection = self._connected()
        with connection.transaction():
            log.examine(PostgresChain(connection, self._witness))
        self._enter(0, batch.number - 1)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection
