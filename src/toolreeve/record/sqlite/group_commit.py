"""Group commit: many writes in one transaction, each under its own savepoint.

A group is on disk as a whole or not at all; one failing job does not affect the others.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from toolreeve.record.chain import ChainStore
from toolreeve.record.sqlite.chain import SqliteChain

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class Log(Protocol):
    """Turns deferred and appended lines into rows. Called in the writer thread.

    While `unsynced` is set, `idle` is called once nothing was written for a second.
    """

    unsynced: bool

    def write(self, chain: ChainStore, lines: Sequence[Any]) -> None:
        """Inside the transaction. After a failure the same lines may be passed again."""

    def committed(self, chain: ChainStore, lines: Sequence[Any]) -> None:
        """The group is on disk. Called outside any transaction, before any caller is answered."""

    def idle(self, chain: ChainStore) -> None:
        """Nothing was written for a while. Called outside any transaction."""


class Job:
    """A waiting caller: for `work` to be done, for `line` to be written, or for everything before it."""

    __slots__ = ("future", "kept", "line", "loop", "problem", "value", "work")

    def __init__(self, *, work: Work[Any] | None = None, line: Any = None, kept: bool = False) -> None:
        self.work = work
        self.line = line
        self.kept = kept
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.value: Any = None
        self.problem: BaseException | None = None

    @property
    def awaits_all(self) -> bool:
        return self.work is None and self.line is None


def commit(connection: sqlite3.Connection, jobs: Sequence[Job], lines: Sequence[Any], log: Log | None) -> None:
    """Raises if the group as a whole could not be written; an exception of a single job is stored in it."""
    works = [job for job in jobs if job.work is not None]
    if not works and not lines:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in works:
            _attempt(connection, job)
        if lines and log is not None:
            log.write(SqliteChain(connection), lines)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise


def _attempt(connection: sqlite3.Connection, job: Job) -> None:
    connection.execute("SAVEPOINT job")
    try:
        job.value = job.work(connection) if job.work is not None else None
    except Exception as problem:
        if not connection.in_transaction:
            raise  # SQLite itself rolled back the whole transaction, as on a full disk
        connection.execute("ROLLBACK TO job")
        job.problem = RuntimeError("the work raised StopIteration") if isinstance(problem, StopIteration) else problem
    connection.execute("RELEASE job")


def answer(jobs: Sequence[Job]) -> None:
    """Wake each event loop once, however many of its callers waited."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, own in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, own)
        except RuntimeError:
            continue  # the loop has closed: no caller is left


def _resolve(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.problem is None:
            job.future.set_result(job.value)
        else:
            job.future.set_exception(job.problem)
