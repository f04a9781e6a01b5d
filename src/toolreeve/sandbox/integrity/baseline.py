"""Baseline: the guarded paths before commands ran, on disk.

A runtime that is killed cannot assess what its commands left; the next one does, by its baseline. Each process holds a
lock on its own file, which the kernel frees when it dies. The one byte in that file says whether a command runs.
"""

import fcntl
import json
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from toolreeve.core.atomic import write_private
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.integrity.changes import Signature
from toolreeve.sandbox.integrity.path_table import is_in
from toolreeve.sandbox.integrity.watch import Watch

logger = logging.getLogger(__name__)

IDLE, BUSY = b"0", b"1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The accepted state. `paths` has signatures, and the content of files that git reads; `covered` the inodes of
    paths that commands could not change; `dangling` the guarded links without a target."""

    boot: str
    time_ns: int
    roots: list[str]
    complete: bool
    paths: Mapping[str, tuple[Signature, str | None]]
    covered: Mapping[str, int]
    dangling: list[str]


class Baseline:
    """The baseline of one process. `problem` says why none can be written. `stale` is set when the accepted state
    changes."""

    def __init__(self, directory: str, guards: GuardTable) -> None:
        self._directory = Path(directory)
        self._guards = guards
        self._lock = self._directory / f"{secrets.token_hex(8)}.lock"
        self._descriptor = -1
        self._mark = IDLE
        self._paths: dict[str, tuple[Signature, str | None]] = {}
        self._dangling: list[str] = []
        self.stale = True
        self.problem = ""

    def open(self) -> None:
        """The file is locked before it gets the name by which others find it."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor, made = tempfile.mkstemp(dir=self._directory, prefix=".")
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            os.pwrite(self._descriptor, IDLE, 0)
            Path(made).rename(self._lock)
        except OSError as problem:
            self._fail(problem)

    def begin(self, watch: Watch, covered: Mapping[str, tuple[int, int]], unsettled: Collection[str]) -> None:
        """A command is about to run. Unless the accepted state has changed, at most the one byte is written.

        `unsettled` paths may be the work of commands that still run: their former state counts.
        """
        if self._descriptor < 0:
            return
        try:
            if self.stale:
                self._write(watch, covered, unsettled)
        except OSError as problem:
            self._fail(problem)
        self._set_mark(BUSY)

    def end(self) -> None:
        """No command runs any more, and what they left has been assessed."""
        if self._descriptor >= 0:
            self._set_mark(IDLE)

    def close(self) -> None:
        """While a command runs, the baseline stays for the next runtime."""
        if self._descriptor >= 0:
            if self._mark == IDLE:
                remove(self._lock)
            os.close(self._descriptor)
            self._descriptor = -1

    def _fail(self, problem: OSError) -> None:
        self.problem = f"cannot write a baseline to {self._directory} ({problem.strerror}; state.dir): if the"
        self.problem += " runtime is killed, what its commands leave is not checked"
        logger.warning(self.problem)

    def _set_mark(self, mark: bytes) -> None:
        if mark == self._mark:
            return
        try:
            os.pwrite(self._descriptor, mark, 0)
            self._mark = mark
        except OSError as problem:
            self._fail(problem)

    def _write(self, watch: Watch, covered: Mapping[str, tuple[int, int]], unsettled: Collection[str]) -> None:
        paths: dict[str, tuple[Signature, str | None]] = {}
        for path, signature, content in watch.known():
            if not is_in(path, unsettled):
                paths[path] = signature, None if content is None else content.decode("latin-1")
            elif path in self._paths:
                paths[path] = self._paths[path]
        accepted = Accepted(
            boot=boot_id(),
            time_ns=time.time_ns(),
            roots=list(self._guards.roots),
            complete=watch.complete,
            paths=paths,
            covered={path: inode for path, (_, inode) in covered.items()},
            dangling=[path for path in watch.guarded() if self._is_dangling(path, unsettled)],
        )
        store(self._lock, accepted)
        self._paths = paths
        self._dangling = accepted.dangling
        self.stale = False
        self.problem = ""

    def _is_dangling(self, path: str, unsettled: Collection[str]) -> bool:
        if is_in(path, unsettled):
            return path in self._dangling
        return os.path.islink(path) and not os.path.exists(path)


def store(lock: Path, accepted: Accepted) -> None:
    write_private(lock.with_suffix(".json"), json.dumps(asdict(accepted)).encode())


def remove(lock: Path) -> None:
    lock.with_suffix(".json").unlink(missing_ok=True)
    lock.unlink(missing_ok=True)


def boot_id() -> str:
    """The boot id: when the machine crashes, the mark may not have reached the disk.

    Where there is none, every call returns another one.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return secrets.token_hex(8)
