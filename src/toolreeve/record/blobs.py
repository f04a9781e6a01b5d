"""Content-addressed blobs: the former contents of changed files, for undo.

One file per content, named by its digest. A blob is on disk before `save` returns. Blobs are never changed, only added
and pruned.
"""

import hashlib
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from toolreeve.core.atomic import sync_directory
from toolreeve.core.errors import ErrorCode, ToolError

LARGEST = 64 * 1024 * 1024
YOUNG_SECONDS = 3600.0
_CHUNK = 1024 * 1024


class Blobs:
    """`now` is wall-clock time: a blob without references is safe from pruning for an hour.
    `fresh_bytes` is about how much was added since the last pruning."""

    def __init__(self, directory: Path, now: Callable[[], float]) -> None:
        self._directory = directory
        self._now = now
        self.fresh_bytes = 0

    def save(self, descriptor: int) -> str:
        """Store the content of an open file; returns its digest. Blocks until it is on disk."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._directory / f"new-{os.getpid()}-{os.urandom(8).hex()}"
        try:
            digest = self._copy(descriptor, temporary)
            os.utime(temporary, (self._now(), self._now()))
            temporary.replace(self._directory / digest)
            sync_directory(self._directory)
            self.fresh_bytes += os.fstat(descriptor).st_size
        except OSError as problem:
            raise ToolError(
                ErrorCode.WRITE_ERROR,
                f"the former content could not be saved for undo: {problem.strerror}; nothing was changed",
            ) from None
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        return digest

    def _copy(self, descriptor: int, temporary: Path) -> str:
        digest = hashlib.sha256()
        offset = 0
        target = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(target, "wb") as copy:
            while chunk := os.pread(descriptor, _CHUNK, offset):
                digest.update(chunk)
                copy.write(chunk)
                offset += len(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        return digest.hexdigest()

    def load(self, digest: str) -> bytes | None:
        """The content; None if it was pruned or does not match its digest."""
        try:
            content = (self._directory / digest).read_bytes()
        except FileNotFoundError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    def open(self, digest: str) -> BinaryIO:
        return (self._directory / digest).open("rb")

    def has(self, digest: str) -> bool:
        return (self._directory / digest).is_file()

    def sizes(self) -> dict[str, int]:
        """The size of each blob, by digest."""
        if not self._directory.is_dir():
            return {}
        with os.scandir(self._directory) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if len(entry.name) == 64}

    def prune(self, wanted: Collection[str]) -> None:
        """Remove unwanted blobs, except young ones: a change may be about to refer to them."""
        self.fresh_bytes = 0
        if not self._directory.is_dir():
            return
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name not in wanted and entry.stat().st_mtime < self._now() - YOUNG_SECONDS:
                    Path(entry.path).unlink(missing_ok=True)
