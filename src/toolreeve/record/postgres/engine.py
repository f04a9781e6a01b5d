"""PostgreSQL engine: batches of records in one thread, transactions in others.

While the database is away nothing is acknowledged: callers get E_AUDIT_ERROR, and what must not be lost is kept and
sent when it is back.
"""

import asyncio
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import ChainError, Line
from toolreeve.record.engine import CAPACITY, RETRY_DELAY, Engine
from toolreeve.record.jobs import Job, Log, answer
from toolreeve.record.postgres import liveness
from toolreeve.record.postgres.batches import PATIENCE, Batch, BatchWriter, RefusedBatch
from toolreeve.record.postgres.chain import PostgresChain
from toolreeve.record.postgres.connection import PostgresConnection, connect, one_line, options_of, place_of, prepare
from toolreeve.record.postgres.listener import Listener
from toolreeve.record.postgres.liveness import LeaseLiveness
from toolreeve.record.sql.connection import SqlConnection

logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # callers are told what failed
T = TypeVar("T")
CONNECTIONS = 12
_ATTEMPTS = 3
_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class PostgresEngine(Engine):
    remedy = "check the database server and state.url (`toolreeve doctor`); the store recovers by itself"

    def __init__(
        self,
        url: str,
        directory: Path,
        *,
        read_only: bool = False,
        capacity: int = CAPACITY,
        retry_delay: float = RETRY_DELAY,
        patience: float = PATIENCE,
    ) -> None:
        place = place_of(url)
        path = directory / f"postgresql-{hashlib.sha256(place.encode()).hexdigest()[:12]}"
        super().__init__(path, read_only=read_only, capacity=capacity, retry_delay=retry_delay)
        self.place = place
        self._patience = patience
        self._witness = f"{os.uname().nodename}:{path}"
        self._connect = partial(connect, url, prepare_threshold=0)
        self._prepare = partial(prepare, url, place, read_only=read_only)
        self._pool = ConnectionPool(
            url,
            kwargs=options_of(url),
            min_size=0,
            max_size=CONNECTIONS,
            open=False,
            check=ConnectionPool.check_connection,
            timeout=patience,
        )
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="toolreeve-store")
        self._listener = Listener(self._connect, self._beat)
        self._facts: Callable[[], Mapping[str, str]] = dict
        self._liveness = LeaseLiveness(self._borrowed, self._about)
        self._batches = BatchWriter(
            self._connect, witness=self._witness, gateway=self._liveness.name, enter=self._liveness.enter
        )
        self._open_batch: Batch | None = None
        self._acknowledging = threading.Lock()

    @property
    def has_begun(self) -> bool:
        if self._open:
            return True
        try:
            with self._connect() as connection:
                return connection.execute("SELECT to_regclass('migrations')").fetchone() != (None,)
        except psycopg.Error:
            return True  # whoever opens it is told why it cannot be reached

    @property
    def backlog(self) -> int:
        return len(self._lines) + (len(self._open_batch.lines) if self._open_batch is not None else 0)

    def liveness(self) -> LeaseLiveness:
        return self._liveness

    async def gateways(self) -> list[dict[str, Any]]:
        query = "SELECT name, about, lease >= now() FROM processes ORDER BY name"
        rows = await self.read(lambda connection: connection.execute(query).fetchall())
        return [{"name": name, **json.loads(about), "alive": alive} for name, about, alive in rows]

    def describe(self, facts: Callable[[], Mapping[str, str]]) -> None:
        self._facts = facts

    def _about(self) -> bytes:
        return json.dumps({"host": os.uname().nodename, "process": os.getpid(), **self._facts()})

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        self._listener.add(channel, wake)

    async def start(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(self._prepare)
        if not self.read_only:
            self._start_writer(self._batches)
            self._listener.start()

    def _finish(self) -> None:
        super()._finish()
        self._listener.stop()
        self._threads.shutdown(wait=True)
        self._pool.close()

    @contextmanager
    def _borrowed(self) -> Iterator[psycopg.Connection]:
        if not self._closed:
            self._pool.open()
        with self._pool.connection() as connection:
            yield connection

    async def transact(self, work: Callable[[SqlConnection], T]) -> T:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.transact_blocking, work)

    def transact_blocking(self, work: Callable[[SqlConnection], T]) -> T:
        """As `transact`, in the caller's thread: never on an event loop."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._transact_once(work)
            except _AGAIN as problem:
                if attempt + 1 == _ATTEMPTS:
                    raise self.unwritten(f"{self.place}: {one_line(problem)}") from problem
            except StopIteration:
                raise RuntimeError("the work raised StopIteration") from None
            except (psycopg.Error, PoolTimeout, UnicodeError) as problem:
                raise self.unwritten(f"{self.place}: {one_line(problem)}") from problem
        raise AssertionError

    def _transact_once(self, work: Callable[[SqlConnection], T]) -> T:
        with self._borrowed() as raw:
            connection = PostgresConnection(raw)
            with raw.transaction():
                value = work(connection)
            log = self._log
            if connection.lines and log is not None:
                chain = PostgresChain(raw, self._witness, connection.head)
                with self._acknowledging:
                    self._notify_log(partial(log.committed, chain, connection.lines))
        return value

    def write_lines(self, connection: SqlConnection, lines: Sequence[Line]) -> None:
        if self._log is not None and isinstance(connection, PostgresConnection):
            chain = PostgresChain(connection.raw, self._witness)
            self._log.write(chain, lines)
            connection.lines += lines
            connection.head = chain.stored_head()

    def chain_of(self, connection: SqlConnection) -> PostgresChain:
        return PostgresChain(connection.raw, self._witness)  # type: ignore[attr-defined]  # it opened it itself

    async def read(self, query: Callable[[SqlConnection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.read_blocking, query)

    def read_blocking(self, query: Callable[[SqlConnection], T]) -> T:
        if self._closed:
            raise ToolError(ErrorCode.AUDIT_ERROR, f"{self.place} has been closed")
        try:
            with self._borrowed() as raw:
                return query(PostgresConnection(raw))
        except (psycopg.Error, PoolTimeout, UnicodeError) as problem:
            raise ToolError(
                ErrorCode.AUDIT_ERROR, f"{self.place} cannot be read: {one_line(problem)}", suggestions=(self.remedy,)
            ) from problem

    def _is_retrying(self) -> bool:
        return self._open_batch is not None

    def _write_group(self, connection: BatchWriter, jobs: list[Job], lines: list[Any]) -> None:
        everything = lines + [job.line for job in jobs if job.line is not None]
        is_taken = False
        try:
            self._settle(connection)
            if everything and self._log is not None:
                connection.number += 1
                self._open_batch = Batch(connection.number, everything, self._log.entries(everything))
                is_taken = True
                self._settle(connection)
        except Exception as problem:
            self._refuse(problem, jobs, lines, is_taken=is_taken)
        else:
            self.healthy = True
        answer(jobs)

    def _settle(self, batches: BatchWriter) -> None:
        """Send the batch whose outcome is not known. Callers that were refused meanwhile may find it written."""
        batch, log = self._open_batch, self._log
        if batch is None or log is None:
            return
        chain = batches.send(batch, log, patience=self._patience if self.healthy else 0.0)
        with self._acknowledging:
            self._notify_log(partial(log.committed, chain, batch.lines))
        self._open_batch = None

    def _refuse(self, problem: Exception, jobs: list[Job], lines: list[Any], *, is_taken: bool) -> None:
        """What is in the open batch stays there; other lines are deferred again, or dropped."""
        if isinstance(problem, RefusedBatch) and self._open_batch is not None:
            self._batches.number -= 1
            if not is_taken:
                lines = [*self._open_batch.lines, *lines]
            self._open_batch = None
        elif is_taken:
            lines = []
            for job in jobs:
                job.kept = False
        if isinstance(problem, ChainError):
            self._open_batch = None  # it is in the database, changed: nothing more can be done for it
        self._fail(problem, jobs, lines)

    def _notify_idle(self, log: Log, connection: BatchWriter) -> None:
        self._notify_log(lambda: log.idle(connection.flushed_chain()))

    def _beat(self, connection: psycopg.Connection) -> None:
        """Renew the lease of this process, and close the calls of those that died."""
        if not self._liveness.entered or self._log is None:
            return
        alive, dead = liveness.beat(connection, self._liveness.name, self._about())
        self._batches.alone = not alive
        if dead:
            with connection.transaction():
                names = self._log.bury(PostgresChain(connection, self._witness))
            for name in names:
                self._liveness.forget(name)
