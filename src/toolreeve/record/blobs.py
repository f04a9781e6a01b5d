"""Where is kept what a change replaced? One file for each content, named by its digest, in a directory of our own.

A content is on disk before anyone is told that it is kept. Nothing here is ever changed, only added and pruned.
"""

import hashlib
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from toolreeve.core.errors import ErrorCode, ToolError

LARGEST = 64 * 1024 * 1024
YOUNG_SECONDS = 3600.0
_PIECE = 1024 * 1024


class Blobs:
    """`now` is wall-clock time: a content that nobody refers to yet is safe from pruning for an hour.
    `fresh_bytes` is about how much was added since the last pruning."""

    def __init__(self, directory: Path, now: Callable[[], float]) -> None:
        self._directory, self._now = directory, now
        self.fresh_bytes = 0

    def save(self, descriptor: int) -> str:
        """Keep the content of an open file; its digest. Blocks until it is on disk."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._directory / f"new-{os.getpid()}-{os.urandom(8).hex()}"
        try:
            digest = self._copy(descriptor, temporary)
            os.utime(temporary, (self._now(), self._now()))
            temporary.replace(self._directory / digest)
            self._sync()
            self.fresh_bytes += os.fstat(descriptor).st_size
        except OSError as problem:
            raise ToolError(
                ErrorCode.WRITE_ERROR,
                f"what was there could not be kept for undo: {problem.strerror}; nothing was changed",
            ) from None
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        return digest

    def _copy(self, descriptor: int, temporary: Path) -> str:
        digest, offset = hashlib.sha256(), 0
        made = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(made, "wb") as copy:
            while piece := os.pread(descriptor, _PIECE, offset):
                digest.update(piece)
                copy.write(piece)
                offset += len(piece)
            copy.flush()
            os.fsync(copy.fileno())
        return digest.hexdigest()

    def _sync(self) -> None:
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def load(self, digest: str) -> bytes | None:
        """The content, or None if it is no longer kept or is not what it was."""
        try:
            content = (self._directory / digest).read_bytes()
        except FileNotFoundError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    def has(self, digest: str) -> bool:
        return (self._directory / digest).is_file()

    def sizes(self) -> dict[str, int]:
        """The size of each content that is kept."""
        if not self._directory.is_dir():
            return {}
        with os.scandir(self._directory) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if len(entry.name) == 64}

    def prune(self, wanted: Collection[str]) -> None:
        """Remove what is not wanted, unless it is young: somebody may be about to refer to it."""
        self.fresh_bytes = 0
        if not self._directory.is_dir():
            return
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name not in wanted and entry.stat().st_mtime < self._now() - YOUNG_SECONDS:
                    Path(entry.path).unlink(missing_ok=True)
