"""Liveness of the processes that share a database, by leases.

A lease ends by the clock of the database: the clocks of the machines do not matter. A process whose lease ended is
dead; another one closes its open calls and removes it. If it was only suspended, it enters again.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import psycopg

BEAT = 5.0
"""Seconds between two renewals of the lease of 15 seconds."""
_ENTER = """
    INSERT INTO processes (name, settled, batch, about, lease) VALUES (%s, %s, %s, %s, now() + interval '15 s')
    ON CONFLICT (name) DO UPDATE SET batch = excluded.batch, lease = excluded.lease
"""


class LeaseLiveness:
    """A row of the table of processes (`record.liveness.Liveness`). `about` is what others see of this one."""

    def __init__(
        self, connection: Callable[[], AbstractContextManager[psycopg.Connection]], about: Callable[[], bytes]
    ) -> None:
        self._connection = connection
        self._about = about
        self.name = os.urandom(16).hex()
        self.entered = False

    def enter(self, seq: int, batch: int = 0) -> None:
        self._execute(_ENTER, self.name, seq, batch, self._about())
        self.entered = True

    def settled(self, seq: int) -> None:
        if self.entered:
            self._execute("UPDATE processes SET settled = %s WHERE name = %s", seq, self.name)

    def leave(self) -> None:
        if self.entered:
            self.entered = False
            self.forget(self.name)

    def dead(self) -> Iterable[tuple[str, int]]:
        query = "SELECT name, settled FROM processes WHERE lease < now() AND name <> %s ORDER BY name"
        with self._connection() as connection:
            return connection.execute(query, (self.name,)).fetchall()

    def is_alive(self, name: str) -> bool:
        with self._connection() as connection:
            query = "SELECT 1 FROM processes WHERE name = %s AND lease >= now()"
            return name == self.name or connection.execute(query, (name,)).fetchone() is not None

    def forget(self, name: str) -> None:
        self._execute("DELETE FROM processes WHERE name = %s", name)

    def _execute(self, statement: str, *values: str | int | bytes) -> None:
        with self._connection() as connection:
            connection.execute(statement, values)


def beat(connection: psycopg.Connection, name: str, about: bytes) -> tuple[int, int]:
    """Renew the lease; how many other processes are alive, and how many dead."""
    renew = "UPDATE processes SET lease = now() + interval '15 s', about = %s WHERE name = %s"
    connection.execute(renew, (about, name))
    query = "SELECT count(*) FILTER (WHERE lease >= now()), count(*) FROM processes WHERE name <> %s"
    row = connection.execute(query, (name,)).fetchone() or (0, 0)
    return row[0], row[1] - row[0]
