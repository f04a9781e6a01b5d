"""SQLite engine: one file that several processes may share."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import Line
from toolreeve.record.engine import CAPACITY, RETRY_DELAY, Engine
from toolreeve.record.jobs import Job, Log, answer
from toolreeve.record.sql.connection import SqlConnection
from toolreeve.record.sqlite import database, group_commit
from toolreeve.record.sqlite.chain import SqliteChain

T = TypeVar("T")


class SqliteEngine(Engine):
    def __init__(
        self, path: Path, *, read_only: bool = False, capacity: int = CAPACITY, retry_delay: float = RETRY_DELAY
    ) -> None:
        super().__init__(path, read_only=read_only, capacity=capacity, retry_delay=retry_delay)
        self._readers: deque[database.SqliteConnection] = deque()

    async def start(self) -> None:
        if self.read_only:
            self._readers.append(await asyncio.to_thread(database.open_reader, self.path))
        else:
            self._start_writer(await asyncio.to_thread(database.open_writer, self.path))

    async def transact(self, work: Callable[[SqlConnection], T]) -> T:
        try:
            value: T = await self._submit(Job(work=work))
        except sqlite3.Error as problem:
            raise self.unwritten(f"{self.path}: {problem}") from problem
        return value

    def write_lines(self, connection: SqlConnection, lines: Sequence[Line]) -> None:
        if self._log is not None:
            self._log.write(self.chain_of(connection), lines)

    def chain_of(self, connection: SqlConnection) -> SqliteChain:
        return SqliteChain(connection)  # type: ignore[arg-type]  # it opened it itself

    def read_blocking(self, query: Callable[[SqlConnection], T]) -> T:
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
        super()._finish()
        while self._readers:
            self._readers.pop().close()

    def _write_group(self, connection: Any, jobs: list[Job], lines: list[Any]) -> None:
        everything = lines + [job.line for job in jobs if job.line is not None]
        log = self._log
        try:
            group_commit.commit(connection, jobs, everything, log)
        except Exception as problem:
            self._fail(problem, jobs, lines)
        else:
            self.healthy = True
            if log is not None and (everything or any(job.work is not None for job in jobs)):
                self._notify_log(partial(log.committed, SqliteChain(connection), everything))
        answer(jobs)

    def _notify_idle(self, log: Log, connection: Any) -> None:
        self._notify_log(partial(log.idle, SqliteChain(connection)))
