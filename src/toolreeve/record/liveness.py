"""Which processes are still there? Each holds a lock on a file of its own; the kernel lets go of it when one dies.

A lock, not a process id: ids are reused, and mean nothing across containers that share the directory. A process that
ends properly takes its file away, so a file that nobody locks is the trace of one that did not.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class Liveness:
    """One process's place in the directory beside the database.

    Its file also says from which record on the process may have left something open.
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
        """Nothing of this process is open up to record `seq`. Overwritten in place: numbers only grow."""
        if self._descriptor >= 0:
            os.pwrite(self._descriptor, b"%020d" % seq, 0)

    def leave(self) -> None:
        if self._descriptor >= 0:
            (self._directory / self.name).unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1

    def dead(self) -> Iterator[tuple[str, int]]:
        """Names of processes that ended without leaving, and from where on their records need a look."""
        for path in sorted(self._directory.iterdir()) if self._directory.exists() else ():
            if path.name != self.name and (content := _unlocked(path)) is not None:
                yield path.name, int(content) if content.isdigit() else 0

    def forget(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


def _unlocked(path: Path) -> bytes | None:
    """The content of a file that nobody holds. Where that cannot be told, it counts as held."""
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
