"""Store of a program without an event loop: writes at once.

For a process that records a single decision and ends. Its coroutines never wait, so `run_now` can run them.
"""

import sqlite3
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any, TypeVar

from toolreeve.record.chain import Line
from toolreeve.record.sql.connection import SqlConnection
from toolreeve.record.sqlite import database, group_commit
from toolreeve.record.store import Store

T = TypeVar("T")


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits. Raises RuntimeError if it does."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        value: T = ended.value
        return value
    coroutine.close()
    raise RuntimeError("a coroutine waits, and there is no event loop")


class _Written:
    """What `append` returns: there is nothing left to wait for."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


class _Work:
    """The part of a job that a commit uses."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work
        self.value: Any = None
        self.problem: BaseException | None = None


class BlockingStore(Store):
    """Every write is one durable transaction."""

    _connection: database.SqliteConnection | None = None

    async def start(self) -> None:
        self._connection = database.open_writer(self.path)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._finish()

    async def transact(self, work: Callable[[SqlConnection], T]) -> T:
        job = _Work(work)
        self._commit([job], [])
        if job.problem is not None:
            raise job.problem
        value: T = job.value
        return value

    async def in_thread(self, work: Callable[..., T], *args: Any) -> T:
        return work(*args)

    def append(self, line: Line, *, kept: bool) -> Any:  # noqa: ARG002 - nothing is retried
        self._commit([], [line])
        return _Written()

    def defer(self, line: Line) -> bool:
        self._commit([], [line])
        return True

    async def flush(self) -> None:
        """Nothing is ever pending."""

    def _commit(self, jobs: Sequence[Any], lines: Sequence[Line]) -> None:
        connection = self._connection
        if connection is None:
            raise self.unwritten(f"{self.place} is not open for writing")
        try:
            group_commit.commit(connection, jobs, lines, self._log)
        except sqlite3.Error as problem:
            raise self.unwritten(f"{self.path}: {problem}") from problem
        if self._log is not None:
            self._notify_log(partial(self._log.committed, self.chain_of(connection), lines))
