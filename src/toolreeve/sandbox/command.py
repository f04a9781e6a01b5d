"""One command in a slot: its streams, its timeout, and its outcome.

Every wait has a deadline: at its timeout the command is killed by the kernel with all it started, and its streams
close.
"""

import asyncio
import json
import os
import socket
import stat
from collections.abc import Mapping, Sequence

from toolreeve.core.process import OnOutput, ProcessLimits, ProcessRequest
from toolreeve.sandbox.capture import Capture
from toolreeve.sandbox.command_result import NEVER_STARTED, CommandOutcome
from toolreeve.sandbox.kernel.rlimits import LEAST_OPEN_FILES
from toolreeve.sandbox.launch import open_memory_file
from toolreeve.sandbox.messages import SLOT_REPORT
from toolreeve.sandbox.session import SandboxSession, SlotHandle

_LARGEST_MESSAGE = 1 << 14
_DRAIN_TIMEOUT = 1.0
_CHECK_LIMITS_EVERY = 0.2
_MEGABYTE = 1 << 20
_STREAM_MODES = (0o644, 0o622, 0o622)


class ConfinedCommand:
    """One run in one slot, which is given back or replaced afterwards."""

    def __init__(
        self, session: SandboxSession, slot: SlotHandle, on_output: OnOutput | None, limits: ProcessLimits
    ) -> None:
        self._session = session
        self._slot = slot
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._pending = 2  # open streams
        self._report: bytes | None = None
        self._drain_timer: asyncio.TimerHandle | None = None
        self._killed = False
        self._timed_out = False
        self._is_unsent = False
        room = limits.output_kb * 1024
        self._out = Capture("stdout", room, self._loop, on_output)
        self._err = Capture("stderr", room, self._loop, on_output)

    async def run(self, request: ProcessRequest, environment: Mapping[str, str], nothing: int) -> CommandOutcome:
        timeout = self._loop.call_later(self._limits.timeout, self._expire)
        self._schedule_check()
        try:
            self._start(request, environment, nothing)
            await self._over
            return self._outcome()
        except asyncio.CancelledError:
            await self._finish_killed()
            raise
        finally:
            timeout.cancel()
            self._check_timer.cancel()
            self._release_slot()

    def _start(self, request: ProcessRequest, environment: Mapping[str, str], nothing: int) -> None:
        message = to_message(request, environment)
        passed = [self._out.start(self._one_done), self._err.start(self._one_done)]
        try:
            stdin = nothing
            if request.stdin:
                stdin = open_memory_file(request.stdin)
                passed.append(stdin)
            files = [open_memory_file(data) for data in request.files.values()]
            passed += files
            report = self._slot.report = self._loop.create_future()
            report.add_done_callback(self._reported)
            try:
                send_order(self._slot, message, [stdin, passed[0], passed[1], *files])
            except (BrokenPipeError, ConnectionResetError):  # the session notices that the slot is dead
                self._is_unsent = True
        finally:
            for descriptor in passed:
                os.close(descriptor)

    def _reported(self, report: "asyncio.Future[bytes]") -> None:
        self._report = b"" if report.cancelled() else report.result()
        self._drain_timer = self._loop.call_later(_DRAIN_TIMEOUT, self._close_streams)
        self._finish_if_done()

    def _one_done(self) -> None:
        self._pending -= 1
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self._report is not None and not self._pending and not self._over.done():
            self._over.set_result(None)

    def _schedule_check(self) -> None:
        self._check_timer = self._loop.call_later(_CHECK_LIMITS_EVERY, self._check_limits)

    def _check_limits(self) -> None:
        """Where the kernel killed one process for memory, the others need not go on; nor where a layer is full, of
        which nothing will be kept."""
        slot = self._slot
        if (slot.group is not None and slot.group.limits_hit()[0]) or slot.find_full():
            self._kill()
        elif slot.group is not None or slot.layers:
            self._schedule_check()

    def _expire(self) -> None:
        self._timed_out = self._report is None
        self._kill()

    def _kill(self) -> None:
        """With namespaces the slot init exits after all other processes, so it is waited for; else the slot reports."""
        slot = self._slot
        if self._killed or slot.pidfd < 0:
            return
        self._killed = True
        slot.terminate()
        if slot.has_namespaces:
            self._pending += 1
            self._loop.add_reader(slot.pidfd, self._init_exited, slot.pidfd)
        else:
            self._loop.call_later(_DRAIN_TIMEOUT / 2, slot.kill)

    def _init_exited(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        self._slot.is_dead = True
        self._one_done()

    async def _finish_killed(self) -> None:
        """A cancelled command is gone before its caller continues."""
        self._kill()
        self._over = self._loop.create_future()
        self._finish_if_done()
        await asyncio.wait({self._over}, timeout=_DRAIN_TIMEOUT)

    def _close_streams(self) -> None:
        self._out.close()
        self._err.close()

    def _release_slot(self) -> None:
        self._close_streams()
        if self._killed and self._slot.pidfd >= 0:
            self._loop.remove_reader(self._slot.pidfd)
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        kind, *_, is_clean = self._unpack_report()
        if self._slot.layers:  # of a trial, which ends with its call
            self._slot.is_dead = self._slot.is_dead or self._killed
        elif self._killed or not is_clean or kind in (b"M", b"C", b"P"):
            self._session.replace(self._slot)
        else:
            self._session.give_back(self._slot)

    def _unpack_report(self) -> tuple[bytes, int, float, int, bool]:
        return SLOT_REPORT.unpack(self._report) if self._report else (b"K", 9, 0.0, 0, False)

    def _outcome(self) -> CommandOutcome:
        kind, status, cpu_seconds, _, _ = self._unpack_report()
        failed = kind == b"F"
        if self._timed_out:
            kind = b"T"
        elif self._is_unsent:
            kind = NEVER_STARTED
        group = self._slot.group
        memory, processes = (False, False) if group is None else group.limits_hit()
        return CommandOutcome(
            kind=kind,
            exit_code=128 + status if failed else os.waitstatus_to_exitcode(status),
            errno=status if failed else 0,
            cpu_seconds=cpu_seconds,
            stdout=self._out.take(),
            stderr=self._err.take(),
            truncated=self._out.truncated or self._err.truncated,
            seconds=self._loop.time() - self._began,
            memory_limit=memory,
            process_limit=processes,
        )


def send_order(slot: SlotHandle, message: bytes, descriptors: Sequence[int]) -> None:
    """The first three descriptors are the streams. Raises OSError where the slot is gone."""
    _open_by_name(descriptors)
    if len(message) <= _LARGEST_MESSAGE:
        socket.send_fds(slot.commands, [message], descriptors)
        return
    large = open_memory_file(message)
    try:
        socket.send_fds(slot.commands, [b"@"], [large, *descriptors])
    finally:
        os.close(large)


def _open_by_name(streams: Sequence[int]) -> None:
    """Let a program with another uid open its pipes as /dev/stdin, /dev/stdout and /dev/stderr, each in its own
    direction. They have no name but in /proc, where only those find them who may inspect the program."""
    for descriptor, mode in zip(streams, _STREAM_MODES, strict=False):  # files may follow
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, mode)


def to_message(request: ProcessRequest, environment: Mapping[str, str]) -> bytes:
    """The order of a program for a slot."""
    return json.dumps(
        {
            "argv": _limited(request),
            "environment": {**environment, **request.environment},
            "directory": request.directory,
            "private": request.private_directory,
            "files": list(request.files),
            "memory": request.limits.memory_mb * _MEGABYTE,
            "cpu_seconds": request.limits.cpu_seconds,
            "processes": request.limits.processes,
        }
    ).encode()


def _limited(request: ProcessRequest) -> tuple[str, ...]:
    """The command line; behind a shell that lowers the limit of open files if the slot itself needs more."""
    if request.limits.open_files >= LEAST_OPEN_FILES:
        return request.argv
    return ("bash", "-c", 'ulimit -n "$0" && exec "$@"', str(request.limits.open_files), *request.argv)
