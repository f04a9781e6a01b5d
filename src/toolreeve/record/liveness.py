"""Liveness of processes that share a database, by file locks.

Each process locks its own file, and the kernel releases the lock when it dies. Locks, not process ids: ids are reused,
and mean nothing across containers that share the directory. A clean exit removes the file, so an unlocked file marks a
process that died.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol


class Liveness(Protocol):
    """This process among those that share the record. A lease in a shared database would do as well as a lock file.

    All methods block and are called in a thread.
    """

    @property
    def name(self) -> str:
        """Unique among all processes, dead ones included."""
        ...

    def enter(self, seq: int) -> None:
        """This process is alive from now on; it has no open call up to record `seq`."""

    def settled(self, seq: int) -> None:
        """This process has no open call up to record `seq`."""

    def leave(self) -> None:
        """A clean exit: this process is not dead."""

    def dead(self) -> Iterable[tuple[str, int]]:
        """Names of processes that died, and the record number from which on they may have open calls."""
        ...

    def is_alive(self, name: str) -> bool:
        """Whether the process of this name is alive."""
        ...

    def forget(self, name: str) -> None:
        """The open calls of a dead process are closed."""


class FileLiveness:
    """This process's lock file in the directory beside the database.

    It also holds the record number from which on the process may have open calls.
    """

    def __init__(self, database: Path) -> None:
        self._directory = database.with_name(database.name + ".live")
        self.name = os.urandom(16).hex()
        self._descriptor = -1

    def enter(self, seq: int) -> None:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        path = self._directory / self.name
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.settled(seq)

    def settled(self, seq: int) -> None:
        """Overwritten in place: numbers only grow."""
        if self._descriptor >= 0:
            os.pwrite(self._descriptor, b"%020d" % seq, 0)

    def leave(self) -> None:
        if self._descriptor >= 0:
            (self._directory / self.name).unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1

    def dead(self) -> Iterator[tuple[str, int]]:
        if not self._directory.exists():
            return
        for path in sorted(self._directory.iterdir()):
            if path.name == self.name:
                continue
            content = _read_unlocked(path)
            if content is not None:
                yield path.name, int(content) if content.isdigit() else 0

    def living(self) -> Iterator[str]:
        """The names of all processes that are alive."""
        if self._directory.exists():
            yield from (path.name for path in self._directory.iterdir() if self.is_alive(path.name))

    def is_alive(self, name: str) -> bool:
        path = self._directory / name
        return name == self.name or (path.exists() and _read_unlocked(path) is None)

    def forget(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


def _read_unlocked(path: Path) -> bytes | None:
    """The content of a file that no process locks; None if it is locked or that is unknown."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with contextlib.closing(os.fdopen(descriptor, "rb", buffering=0)) as stream:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        return stream.read(20)
