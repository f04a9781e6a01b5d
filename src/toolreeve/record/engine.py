"""Engine of a store: one writer thread, commits shared by waiting callers.

A caller of `append` is answered after the commit with its rows has reached the disk, or with an error: never in
between. Lines passed to `defer` are on disk within a twentieth of a second; if a write fails they are kept and retried,
and once `capacity` lines are pending, `defer` refuses and its caller must wait like the others. Several processes may
share a database, and several event loops of one process may share an Engine; a forked child may not. No connection and
no error of a database leaves its package.
"""

import asyncio
import atexit
import logging
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.record.chain import ChainStore, Line
from toolreeve.record.jobs import Job, Log, answer
from toolreeve.record.liveness import FileLiveness, Liveness
from toolreeve.record.sql.connection import SqlConnection

logger = logging.getLogger(__name__)
T = TypeVar("T")

LINGER = 0.04
CAPACITY = 50_000
RETRY_DELAY = 0.5
IDLE = 1.0
PROBE = 100

_Token = Job | None  # None announces deferred lines


class StoreError(ToolreeveError):
    """The database cannot be opened; the message says why and what to do."""

    code = ErrorCode.AUDIT_ERROR


class Engine(ABC):
    """`failures` counts failed commits, `dropped` the lines discarded because more than `capacity` were pending.
    A failed commit is retried after `retry_delay` seconds. `path` is where files beside the database are kept, and
    `place` names the database in messages."""

    def __init__(
        self, path: Path, *, read_only: bool = False, capacity: int = CAPACITY, retry_delay: float = RETRY_DELAY
    ) -> None:
        self.path = path
        self.place = str(path)
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
        self._gate = threading.Lock()
        self._open = False
        self._closed = False
        self._process = 0
        self._writer: threading.Thread | None = None

    def attach(self, log: Log) -> None:
        self._log = log

    @abstractmethod
    async def start(self) -> None:
        """Open the database, creating or upgrading it. Raises StoreError, which says what to do."""

    def _start_writer(self, connection: Any) -> None:
        self._process = os.getpid()
        self._open = True
        self._writer = threading.Thread(target=self._run, args=(connection,), daemon=True, name="toolreeve-store")
        self._writer.start()
        atexit.register(self._finish)

    async def close(self) -> None:
        """Write everything pending, then close the database. Raises ToolError if something could not be written."""
        await asyncio.to_thread(self._finish)
        if self.backlog:
            raise self.unwritten(f"{self.backlog} records were still pending when the store was closed")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def has_begun(self) -> bool:
        """Whether there is a database yet."""
        return self.path.exists()

    @property
    def backlog(self) -> int:
        """Number of deferred lines not yet written."""
        return len(self._lines)

    @abstractmethod
    async def transact(self, work: Callable[[SqlConnection], T]) -> T:
        """Run `work` in a thread and commit it. It must not end the transaction itself.

        If `work` raises, only its changes are rolled back and the exception is raised here. Cancelling the caller does
        not stop it.
        """

    @abstractmethod
    def write_lines(self, connection: SqlConnection, lines: Sequence[Line]) -> None:
        """Write lines to the record within the caller's transaction, which then stands or falls with them."""

    async def read(self, query: Callable[[SqlConnection], T]) -> T:
        """Run `query` in a thread, on a read-only connection. It must fetch everything it needs."""
        return await self.in_thread(self.read_blocking, query)

    async def in_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run work that blocks, such as on files beside the database."""
        return await asyncio.to_thread(work, *args)

    @abstractmethod
    def read_blocking(self, query: Callable[[SqlConnection], T]) -> T:
        """As `read`, in the caller's thread: never on an event loop."""

    @abstractmethod
    def chain_of(self, connection: SqlConnection) -> ChainStore:
        """The stored chain within the transaction of this connection."""

    async def change_chain(self, work: Callable[[ChainStore], T]) -> T:
        """Run `work` on the stored chain, in one transaction."""
        return await self.transact(lambda connection: work(self.chain_of(connection)))

    async def read_chain(self, query: Callable[[ChainStore], T]) -> T:
        return await self.read(lambda connection: query(self.chain_of(connection)))

    def liveness(self) -> Liveness:
        return FileLiveness(self.path)

    async def gateways(self) -> list[dict[str, Any]]:
        """The processes that share the database, if it knows them: name, host, process, alive, and what they describe:
        version, digests of settings and policy."""
        return []

    def describe(self, facts: Callable[[], Mapping[str, str]]) -> None:  # noqa: B027 - a file has one machine
        """What the others see of this process, if the database tells. Called from any thread, now and then."""

    def listen(self, channel: str, wake: Callable[[], None]) -> None:  # noqa: B027 - callers poll as well
        """Call `wake`, from any thread, when another process announces `channel`, if the database tells."""

    def append(self, line: Any, *, kept: bool) -> "asyncio.Future[None]":
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

    def _submit(self, job: Job) -> "asyncio.Future[Any]":
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
            self._check_open()
            self._tokens.put(token)

    def _check_open(self) -> None:
        if not self._open:
            raise self.unwritten(f"{self.place} is not open for writing")
        if self._process != os.getpid():
            raise self.unwritten(f"{self.place} was opened by the parent process; open it again after a fork")

    def _finish(self) -> None:
        atexit.unregister(self._finish)
        with self._gate:
            self._open = False
            self._closed = True
            self._tokens.put(None)
        if self._writer is not None and self._process == os.getpid():
            self._writer.join()

    def _run(self, connection: Any) -> None:
        try:
            while self._open or not self._tokens.empty():
                jobs = self._gather()
                self._due = False  # before the lines are taken: later deferrals announce themselves again
                lines = self._take(jobs)
                if jobs or lines or self._is_retrying():
                    self._write_group(connection, jobs, lines)
                elif self._log is not None and self._log.unsynced:
                    self._notify_idle(self._log, connection)
        finally:
            connection.close()
            self._abandon()

    def _abandon(self) -> None:
        """If the thread ends unexpectedly, no caller is left waiting for it."""
        with self._gate:
            self._open = False
            jobs = self._drain()
        for job in jobs:
            job.problem = self.unwritten(f"{self.place}: the writer has stopped")
        answer(jobs)

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
        if self._lines or self._is_retrying():
            return self._retry_delay
        if self._log is not None and self._log.unsynced:
            return IDLE
        return None

    def _is_retrying(self) -> bool:
        """Whether something must be written again that is not among the deferred lines."""
        return False

    def _drain(self) -> list[Job]:
        tokens = [self._tokens.get() for _ in range(self._tokens.qsize())]
        return [token for token in tokens if token is not None]

    @abstractmethod
    def _write_group(self, connection: Any, jobs: list[Job], lines: list[Any]) -> None:
        """Commit the work and the lines of these jobs with the deferred lines, then answer the jobs."""

    @abstractmethod
    def _notify_idle(self, log: Log, connection: Any) -> None: ...

    def _notify_log(self, notify: Callable[[], None]) -> None:
        try:
            notify()
        except Exception:  # the rows are durable: nothing here may make them look unwritten
            self.failures += 1
            logger.exception("after writing to %s", self.place)

    def _fail(self, problem: Exception, jobs: list[Job], lines: list[Any]) -> None:
        self.failures += 1
        self.healthy = False
        self._lines.extendleft(reversed(lines + [job.line for job in jobs if job.kept]))
        while len(self._lines) > self._capacity:
            self._lines.pop()
            self.dropped += 1
        for job in jobs:
            job.problem = self.unwritten(f"{self.place}: {' '.join(str(problem).split())}")

    def unwritten(self, problem: str) -> ToolError:
        return ToolError(
            ErrorCode.AUDIT_ERROR, f"the record could not be written: {problem}", suggestions=(self.remedy,)
        )

    remedy = "free disk space, or check the permissions of the state directory (`toolreeve doctor`)"
