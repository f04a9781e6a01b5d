"""Listener: wakes callers when another process announces a change.

It listens first and wakes everybody then, so that no change is missed between two connections. Whoever is woken looks
for itself, and polls as well: a lost announcement delays, and loses nothing.
"""

import logging
import os
import select
import threading
import time
from collections.abc import Callable

import psycopg

from toolreeve.record.postgres.connection import CHANNEL, one_line
from toolreeve.record.postgres.liveness import BEAT

logger = logging.getLogger(__name__)
RECONNECT = 1.0


class Listener:
    """A thread that also calls `beat` every few seconds, with its connection."""

    def __init__(self, connect: Callable[[], psycopg.Connection], beat: Callable[[psycopg.Connection], None]) -> None:
        self._connect = connect
        self._beat = beat
        self._wakers: dict[str, list[Callable[[], None]]] = {}
        self._stop, self._stopping = os.pipe()
        self._thread: threading.Thread | None = None

    def add(self, channel: str, wake: Callable[[], None]) -> None:
        self._wakers.setdefault(CHANNEL + channel, []).append(wake)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True, name="toolreeve-listener")
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            os.write(self._stopping, b"x")
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        is_warned = False
        while not self._is_stopped(0):
            try:
                with self._connect() as connection:
                    is_warned = False
                    self._listen(connection)
            except Exception as problem:  # whatever it is: without this thread, the lease of the process would end
                logger.log(logging.DEBUG if is_warned else logging.WARNING, "not listening: %s", one_line(problem))
                is_warned = True
                if self._is_stopped(RECONNECT):
                    return

    def _is_stopped(self, seconds: float) -> bool:
        return bool(select.select([self._stop], [], [], seconds)[0])

    def _listen(self, connection: psycopg.Connection) -> None:
        connection.add_notify_handler(lambda notify: self._wake(notify.channel))
        known: set[str] = set()
        due = time.monotonic()
        while True:
            for channel in self._wakers.keys() - known:
                connection.execute(f"LISTEN {channel}")
                known.add(channel)
                self._wake(channel)
            if time.monotonic() >= due:
                self._beat(connection)
                due = time.monotonic() + BEAT
            ready = select.select([connection.fileno(), self._stop], [], [], max(0.0, due - time.monotonic()))[0]
            if self._stop in ready:
                return
            if ready:
                connection.execute("SELECT 1")  # takes in what was announced

    def _wake(self, channel: str) -> None:
        for wake in self._wakers.get(channel, ()):
            wake()
