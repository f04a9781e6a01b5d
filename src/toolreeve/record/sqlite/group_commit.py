"""Group commit: many writes in one transaction, each under its own savepoint.

A group is on disk as a whole or not at all; one failing job does not affect the others.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from toolreeve.record.jobs import Job, Log
from toolreeve.record.sqlite.chain import SqliteChain


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
