"""How does one command run? Streams are connected, a slot starts it, and whatever happens it ends within its time.

Every wait has an end: at its time limit the command is killed by the kernel with all it started, and its streams close.
"""

import asyncio
import contextlib
import json
import os
import resource
import socket
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from toolreeve.core.process import OnOutput, ProcessLimits, ProcessRequest
from toolreeve.sandbox.capture import Capture
from toolreeve.sandbox.session import Session, Slot
from toolreeve.sandbox.wire import ENDED

_IN_A_MESSAGE = 100_000
_LAST_WORDS = 1.0
_MEGABYTE = 1 << 20
_OURS = 2  # the slot and its keeper are counted with what they run


class Outcome(NamedTuple):
    """`kind`: X ended, M and C ended for memory and CPU time, F could not start, T timed out, K the slot was killed."""

    kind: bytes
    status: int
    cpu_seconds: float
    stdout: bytes
    stderr: bytes
    truncated: bool
    seconds: float
    memory_met: bool
    processes_met: bool


class Command:
    """One run in one slot, which is given back or dropped when it is over."""

    def __init__(self, session: Session, slot: Slot, on_output: OnOutput | None, limits: ProcessLimits) -> None:
        self._session, self._slot, self._limits = session, slot, limits
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._open_streams = 2
        self._answer: bytes | None = None
        self._killed = False
        self._timed_out = False
        room = limits.output_kb * 1024
        self._out = Capture("stdout", room, self._loop, on_output)
        self._err = Capture("stderr", room, self._loop, on_output)

    async def run(self, request: ProcessRequest, environment: Mapping[str, str], nothing: int) -> Outcome:
        alarm = self._loop.call_later(self._limits.timeout, self._expire)
        try:
            self._start(request, environment, nothing)
            await self._over
            return self._outcome()
        except asyncio.CancelledError:
            await self._finish_killed()
            raise
        finally:
            alarm.cancel()
            self._part()

    def _start(self, request: ProcessRequest, environment: Mapping[str, str], nothing: int) -> None:
        message = _message(request, environment, counts=self._session.plan.counts_memory)
        passed = [self._out.start(self._stream_ended), self._err.start(self._stream_ended)]
        try:
            stdin = nothing
            if request.stdin:
                stdin = _holding(request.stdin)
                passed.append(stdin)
            files = [_holding(data) for data in request.files.values()]
            passed += files
            streams = [stdin, passed[0], passed[1], *files]
            if len(message) > _IN_A_MESSAGE:
                large = _holding(message)
                passed.append(large)
                message, streams = b"@", [large, *streams]
            answer = self._slot.answer = self._loop.create_future()
            answer.add_done_callback(self._answered)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # then the slot's end is heard of
                socket.send_fds(self._slot.commands, [message], streams)
        finally:
            for descriptor in passed:
                os.close(descriptor)

    def _answered(self, answer: "asyncio.Future[bytes]") -> None:
        self._answer = b"" if answer.cancelled() else answer.result()
        self._loop.call_later(_LAST_WORDS, self._close_streams)
        self._check()

    def _stream_ended(self) -> None:
        self._open_streams -= 1
        self._check()

    def _check(self) -> None:
        if self._answer is not None and not self._open_streams and not self._over.done():
            self._over.set_result(None)

    def _expire(self) -> None:
        self._timed_out = self._answer is None
        self._kill()

    def _kill(self) -> None:
        self._killed = True
        self._slot.kill()

    async def _finish_killed(self) -> None:
        """A cancelled command is gone before its caller goes on."""
        self._kill()
        self._over = self._loop.create_future()
        self._check()
        await asyncio.wait({self._over}, timeout=_LAST_WORDS)

    def _close_streams(self) -> None:
        self._out.close()
        self._err.close()

    def _part(self) -> None:
        self._close_streams()
        if self._killed or not self._answer or self._answer[:1] in (b"M", b"C"):
            self._session.drop(self._slot)
        else:
            self._session.give_back(self._slot)

    def _outcome(self) -> Outcome:
        kind, status, user, system, _ = ENDED.unpack(self._answer) if self._answer else (b"K", 9, 0.0, 0.0, 0)
        group = self._slot.group
        memory, processes = group.met() if group is not None else (False, False)
        return Outcome(
            kind=b"T" if self._timed_out else kind,
            status=status,
            cpu_seconds=user + system,
            stdout=bytes(self._out.kept),
            stderr=bytes(self._err.kept),
            truncated=self._out.truncated or self._err.truncated,
            seconds=self._loop.time() - self._began,
            memory_met=memory,
            processes_met=processes,
        )


def _holding(data: bytes) -> int:
    """A descriptor to read the data from: nobody has to write it, so nobody waits for a program that never reads."""
    descriptor = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _message(request: ProcessRequest, environment: Mapping[str, str], *, counts: bool) -> bytes:
    return json.dumps(
        {
            "argv": request.argv,
            "environment": {**environment, **request.environment},
            "directory": request.directory,
            "private": request.private_directory,
            "files": list(request.files),
            "memory": request.limits.memory_mb * _MEGABYTE,
            "cpu_seconds": request.limits.cpu_seconds,
            "limits": _kernel_limits(request.limits, counts),
        }
    ).encode()


@lru_cache(maxsize=64)
def _kernel_limits(limits: ProcessLimits, counts: bool) -> tuple[tuple[int, int, int], ...]:  # noqa: FBT001
    """Kind, soft and hard value. Where no control group counts for the whole tree, a process at least is held."""
    size, memory = limits.file_size_mb * _MEGABYTE, limits.memory_mb * _MEGABYTE
    held = [
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_FSIZE, size, size),
        (resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1),
    ]
    if counts:
        held.append((resource.RLIMIT_DATA, memory, memory))
        held.append((resource.RLIMIT_NPROC, limits.processes + _OURS, limits.processes + _OURS))
    return tuple(held)
