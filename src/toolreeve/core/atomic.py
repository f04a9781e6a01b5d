"""Atomic writes of small private files.

A reader sees the whole old or the whole new content, also after a crash: content and directory are on disk when a
function returns. All raise OSError.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE = 0o600


def write_private(path: Path, data: bytes, *, mode: int = PRIVATE, check: Callable[[], None] | None = None) -> None:
    """Create or replace a file. `check` runs last, before the replacement; if it raises, nothing is changed."""
    with _temporary(path, data, mode) as temporary:
        if check is not None:
            check()
        temporary.replace(path)
        sync_directory(path.parent)


def create_private(path: Path, data: bytes) -> None:
    """Of several processes one wins. The others get FileExistsError, and all read the same content."""
    with _temporary(path, data, PRIVATE) as temporary:
        path.hardlink_to(temporary)
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make created, renamed and removed names durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Against a lost update: others that read the file and write it back wait."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _temporary(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """A synced file beside `path`, removed afterwards if it is still there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if mode != PRIVATE:
                os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
