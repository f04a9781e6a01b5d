"""How do many writes become one commit? Each under a savepoint of its own, all in one transaction, all told at once.

A group is on disk as a whole or not at all; one failing work takes nobody else down with it.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class Log(Protocol):
    """What turns deferred and appended lines into rows. Called in the writer thread.

    While `unsynced` is set, `idle` is called once nothing was written for a second.
    """

    unsynced: bool

    def write(self, connection: sqlite3.Connection, lines: Sequence[Any]) -> None:
        """Inside the transaction. After a failure the same lines may come again."""

    def committed(self, connection: sqlite3.Connection, lines: Sequence[Any]) -> None:
        """The lines, or whatever else was done, are on disk. Called outside any transaction, before anybody is told."""

    def idle(self, connection: sqlite3.Connection) -> None:
        """Nothing was written for a while. Called outside any transaction."""


class Job:
    """Somebody waits: for `work` to be done, for `line` to be written, or just for all before it."""

    __slots__ = ("future", "kept", "line", "loop", "problem", "value", "work")

    def __init__(self, *, work: Work[Any] | None = None, line: Any = None, kept: bool = False) -> None:
        self.work, self.line, self.kept = work, line, kept
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.value: Any = None
        self.problem: BaseException | None = None

    @property
    def awaits_all(self) -> bool:
        return self.work is None and self.line is None


def commit(connection: sqlite3.Connection, jobs: Sequence[Job], lines: Sequence[Any], log: Log | None) -> None:
    """Raises if the group as a whole could not be written; what a single work raised is kept in its job."""
    works = [job for job in jobs if job.work is not None]
    if not works and not lines:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in works:
            _attempt(connection, job)
        if lines and log is not None:
            log.write(connection, lines)
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
            raise  # SQLite itself gave up the whole transaction, as it does on a full disk
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
            continue  # the loop has closed: nobody waits there any more


def _resolve(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.problem is None:
            job.future.set_result(job.value)
        else:
            job.future.set_exception(job.problem)
