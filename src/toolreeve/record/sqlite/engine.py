"""SQLite engine: one file, one writer thread, one commit for all waiting callers.

A caller of `transact` or `append` is answered after the commit with its rows has reached the disk, or with an error:
never in between. Lines passed to `defer` are on disk within a twentieth of a second; if a write fails they are kept and
retried, and once `capacity` lines are pending, `defer` refuses and its caller must wait like the others. Several
processes may share the file, and several event loops of one process may share an Engine; a forked child may not.
No connection and no error of SQLite leaves `record.sqlite`.
"""

import asyncio
import atexit
import logging
import os
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import Line
from toolreeve.record.sqlite import database, group_commit
from toolreeve.record.sqlite.chain import SqliteChain
from toolreeve.record.sqlite.group_commit import Job, Log, Work

logger = logging.getLogger(__name__)
T = TypeVar("T")

LINGER = 0.04
CAPACITY = 50_000
RETRY_DELAY = 0.5
IDLE = 1.0
PROBE = 100

_Token = Job | None  # None announces deferred lines


class Engine:
    """`failures` counts failed commits, `dropped` the lines discarded because more than `capacity` were pending.
    A failed commit is retried after `retry_delay` seconds."""

    def __init__(
        self, path: Path, *, read_only: bool = False, capacity: int = CAPACITY, retry_delay: float = RETRY_DELAY
    ) -> None:
        self.path = path
        self._capacity = capacity
        self._retry_delay = retry_delay
        self.read_only = read_only
        self.failures = 0
        self.dropped = 0
        self.healthy = True
        self._log: Log | None = None
        self._lines: deque[Any] = deque()
        self._due = False
        self._tokens: queue.SimpleQueue[_Token] = queue.SimpleQueue()
        self._readers: deque[sqlite3.Connection] = deque()
        self._gate = threading.Lock()
        self._open = False
        self._closed = False
        self._process = 0
        self._writer: threading.Thread | None = None

    def attach(self, log: Log) -> None:
        self._log = log

    async def start(self) -> None:
        """Open the file, creating or upgrading it. Raises StoreError, which says what to do."""
        if self.read_only:
            self._readers.append(await asyncio.to_thread(database.open_reader, self.path))
            return
        connection = await asyncio.to_thread(database.open_writer, self.path)
        self._process = os.getpid()
        self._open = True
        self._writer = threading.Thread(target=self._run, args=(connection,), daemon=True, name="toolreeve-store")
        self._writer.start()
        atexit.register(self._finish)

    async def close(self) -> None:
        """Write everything pending, then close the file. Raises ToolError if something could not be written."""
        await asyncio.to_thread(self._finish)
        if self._lines:
            raise _unwritten(f"{len(self._lines)} records were still pending when the store was closed")

    @property
    def backlog(self) -> int:
        """Number of deferred lines not yet written."""
        return len(self._lines)

    async def transact(self, work: Work[T]) -> T:
        """Run `work` in the writer thread and commit it. It must not end the transaction itself.

        If `work` raises, only its changes are rolled back and the exception is raised here. Cancelling the caller does
        not stop it.
        """
        try:
            value: T = await self._submit(Job(work=work))
        except sqlite3.Error as problem:
            raise _unwritten(f"{self.path}: {problem}") from problem
        return value

    def write_lines(self, connection: sqlite3.Connection, lines: Sequence[Line]) -> None:
        """Write lines to the record within the caller's transaction, which then stands or falls with them."""
        if self._log is not None:
            self._log.write(SqliteChain(connection), lines)

    async def read(self, query: Work[T]) -> T:
        """Run `query` in a thread, on a read-only connection. It must fetch everything it needs."""
        return await asyncio.to_thread(self._query, query)

    def read_blocking(self, query: Work[T]) -> T:
        """As `read`, in the caller's thread: never on an event loop."""
        return self._query(query)

    def append(self, line: Any, *, kept: bool) -> asyncio.Future[None]:
        """Write `line` now; the future is done when it is durable. On failure a kept line is retried, any other
        dropped."""
        return self._submit(Job(line=line, kept=kept))

    def defer(self, line: Any) -> bool:
        """Write `line` soon. False, and not taken, if too many are pending."""
        if len(self._lines) >= self._capacity:
            return False
        self._lines.append(line)
        if not self._due:
            self._announce()
        return True

    async def flush(self) -> None:
        """Return once everything deferred before is on disk."""
        await self._submit(Job())

    def _submit(self, job: Job) -> asyncio.Future[Any]:
        self._put(job)
        return job.future

    def _announce(self) -> None:
        self._due = True
        try:
            self._put(None)
        except ToolError:
            self._due = False
            raise

    def _put(self, token: _Token) -> None:
        with self._gate:
            if not self._open:
                raise _unwritten(f"{self.path} is not open for writing")
            if self._process != os.getpid():
                raise _unwritten(f"{self.path} was opened by the parent process; open it again after a fork")
            self._tokens.put(token)

    def _query(self, query: Work[T]) -> T:
        if self._closed:
            raise ToolError(ErrorCode.AUDIT_ERROR, f"{self.path} has been closed")
        try:
            connection = self._readers.pop()
        except IndexError:
            connection = database.open_reader(self.path)
        try:
            return query(connection)
        except sqlite3.Error as problem:
            raise ToolError(ErrorCode.AUDIT_ERROR, f"{self.path} cannot be read: {problem}") from problem
        finally:
            self._readers.append(connection)

    def _finish(self) -> None:
        atexit.unregister(self._finish)
        with self._gate:
            self._open = False
            self._closed = True
            self._tokens.put(None)
        if self._writer is not None and self._process == os.getpid():
            self._writer.join()
        while self._readers:
            self._readers.pop().close()

    def _run(self, connection: sqlite3.Connection) -> None:
        try:
            while self._open or not self._tokens.empty():
                jobs = self._gather()
                self._due = False  # before the lines are taken: later deferrals announce themselves again
                lines = self._take(jobs)
                if jobs or lines:
                    self._write_group(connection, jobs, lines)
                elif self._log is not None and self._log.unsynced:
                    self._notify_log(self._log.idle, connection)
        finally:
            connection.close()
            self._abandon()

    def _abandon(self) -> None:
        """If the thread ends unexpectedly, no caller is left waiting for it."""
        with self._gate:
            self._open = False
            jobs = self._drain()
        for job in jobs:
            job.problem = _unwritten(f"{self.path}: the writer has stopped")
        group_commit.answer(jobs)

    def _take(self, jobs: Sequence[Job]) -> list[Any]:
        """The deferred lines for this group; while writes fail, only `PROBE` of them, unless a caller awaits all."""
        count = len(self._lines)
        if not self.healthy and not any(job.awaits_all for job in jobs):
            count = min(count, PROBE)
        return [self._lines.popleft() for _ in range(count)]

    def _gather(self) -> list[Job]:
        """Wait for a job, or for deferred lines to have lingered; then take all jobs queued meanwhile."""
        try:
            token = self._tokens.get(timeout=self._wait_seconds())
            if token is None and self._open:
                token = self._tokens.get(timeout=LINGER)
        except queue.Empty:
            token = None
        jobs = [] if token is None else [token]
        return jobs + self._drain()

    def _wait_seconds(self) -> float | None:
        if self._lines:
            return self._retry_delay
        if self._log is not None and self._log.unsynced:
            return IDLE
        return None

    def _drain(self) -> list[Job]:
        tokens = [self._tokens.get() for _ in range(self._tokens.qsize())]
        return [token for token in tokens if token is not None]

    def _write_group(self, connection: sqlite3.Connection, jobs: list[Job], lines: list[Any]) -> None:
        everything = lines + [job.line for job in jobs if job.line is not None]
        try:
            group_commit.commit(connection, jobs, everything, self._log)
        except Exception as problem:
            self._fail(problem, jobs, lines)
        else:
            self.healthy = True
            if self._log is not None and (everything or any(job.work is not None for job in jobs)):
                self._notify_log(partial(self._log.committed, lines=everything), connection)
        group_commit.answer(jobs)

    def _notify_log(self, notify: Callable[[SqliteChain], None], connection: sqlite3.Connection) -> None:
        try:
            notify(SqliteChain(connection))
        except Exception:  # the rows are durable: nothing here may make them look unwritten
            self.failures += 1
            logger.exception("after writing to %s", self.path)

    def _fail(self, problem: Exception, jobs: list[Job], lines: list[Any]) -> None:
        self.failures += 1
        self.healthy = False
        self._lines.extendleft(reversed(lines + [job.line for job in jobs if job.kept]))
        while len(self._lines) > self._capacity:
            self._lines.pop()
            self.dropped += 1
        for job in jobs:
            job.problem = _unwritten(f"{self.path}: {problem}")


def _unwritten(problem: str) -> ToolError:
    return ToolError(
        ErrorCode.AUDIT_ERROR,
        f"the record could not be written: {problem}",
        suggestions=("free disk space, or check the permissions of the state directory (`toolreeve doctor`)",),
    )
