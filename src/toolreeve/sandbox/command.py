"""How does one command run? Streams are connected, a slot starts it, and whatever happens it ends within its time.

Every wait has an end: at its time limit the command is killed by the kernel with all it started, and its streams close.
"""

import asyncio
import json
import os
import socket
import stat
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from toolreeve.core.process import OnOutput, ProcessLimits, ProcessRequest
from toolreeve.sandbox.capture import Capture
from toolreeve.sandbox.launch import holding
from toolreeve.sandbox.messages import ENDED
from toolreeve.sandbox.session import SandboxSession, SlotHandle

_IN_A_MESSAGE = 1 << 14
_LAST_WORDS = 1.0
_LOOK_EVERY = 0.2
_MEGABYTE = 1 << 20
NEVER_STARTED = b"N"
_BY_NAME = (0o644, 0o622, 0o622)


class CommandOutcome(NamedTuple):
    """`kind`: X ended, M, C and P ended for memory, CPU time and processes, F could not start, T timed out, K the slot
    was killed, N the slot was dead before the command reached it."""

    kind: bytes
    status: int
    cpu_seconds: float
    stdout: bytes
    stderr: bytes
    truncated: bool
    seconds: float
    memory_met: bool
    processes_met: bool


class ConfinedCommand:
    """One run in one slot, which is given back or dropped when it is over."""

    def __init__(
        self, session: SandboxSession, slot: SlotHandle, on_output: OnOutput | None, limits: ProcessLimits
    ) -> None:
        self._session, self._slot, self._limits = session, slot, limits
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._pending = 2  # streams that are open
        self._answer: bytes | None = None
        self._last_words: asyncio.TimerHandle | None = None
        self._killed = False
        self._timed_out = False
        self._unsent = False
        room = limits.output_kb * 1024
        self._out = Capture("stdout", room, self._loop, on_output)
        self._err = Capture("stderr", room, self._loop, on_output)

    async def run(self, request: ProcessRequest, environment: Mapping[str, str], nothing: int) -> CommandOutcome:
        alarm = self._loop.call_later(self._limits.timeout, self._expire)
        self._look_later()
        try:
            self._start(request, environment, nothing)
            await self._over
            return self._outcome()
        except asyncio.CancelledError:
            await self._finish_killed()
            raise
        finally:
            alarm.cancel()
            self._watch.cancel()
            self._part()

    def _start(self, request: ProcessRequest, environment: Mapping[str, str], nothing: int) -> None:
        message = to_message(request, environment)
        passed = [self._out.start(self._done), self._err.start(self._done)]
        try:
            stdin = nothing
            if request.stdin:
                stdin = holding(request.stdin)
                passed.append(stdin)
            files = [holding(data) for data in request.files.values()]
            passed += files
            answer = self._slot.answer = self._loop.create_future()
            answer.add_done_callback(self._answered)
            try:
                send_order(self._slot, message, [stdin, passed[0], passed[1], *files])
            except (BrokenPipeError, ConnectionResetError):  # the slot's end will be heard of
                self._unsent = True
        finally:
            for descriptor in passed:
                os.close(descriptor)

    def _answered(self, answer: "asyncio.Future[bytes]") -> None:
        self._answer = b"" if answer.cancelled() else answer.result()
        self._last_words = self._loop.call_later(_LAST_WORDS, self._close_streams)
        self._check()

    def _done(self) -> None:
        self._pending -= 1
        self._check()

    def _check(self) -> None:
        if self._answer is not None and not self._pending and not self._over.done():
            self._over.set_result(None)

    def _look_later(self) -> None:
        self._watch = self._loop.call_later(_LOOK_EVERY, self._look)

    def _look(self) -> None:
        """Where the kernel ended one process for memory, the others need not go on."""
        group = self._slot.group
        if group is not None and group.met()[0]:
            self._kill()
        elif group is not None:
            self._look_later()

    def _expire(self) -> None:
        self._timed_out = self._answer is None
        self._kill()

    def _kill(self) -> None:
        """With namespaces the keeper ends after all that it kept, so its end is awaited; else the slot answers."""
        slot = self._slot
        if self._killed or slot.pidfd < 0:
            return
        self._killed = True
        slot.kill()
        if slot.apart:
            self._pending += 1
            self._loop.add_reader(slot.pidfd, self._keeper_ended, slot.pidfd)
        else:
            self._loop.call_later(_LAST_WORDS / 2, slot.kill_surely)

    def _keeper_ended(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        self._done()

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
        if self._killed and self._slot.pidfd >= 0:
            self._loop.remove_reader(self._slot.pidfd)
        if self._last_words is not None:
            self._last_words.cancel()
        kind, *_, clean = self._answered_with()
        if self._killed or not clean or kind in (b"M", b"C", b"P"):
            self._session.replace(self._slot)
        else:
            self._session.give_back(self._slot)

    def _answered_with(self) -> tuple[bytes, int, float, float, int, bool]:
        return ENDED.unpack(self._answer) if self._answer else (b"K", 9, 0.0, 0.0, 0, False)

    def _outcome(self) -> CommandOutcome:
        kind, status, user, system, _, _ = self._answered_with()
        group = self._slot.group
        memory, processes = group.met() if group is not None else (False, False)
        return CommandOutcome(
            kind=b"T" if self._timed_out else NEVER_STARTED if self._unsent else kind,
            status=status,
            cpu_seconds=user + system,
            stdout=bytes(self._out.kept),
            stderr=bytes(self._err.kept),
            truncated=self._out.truncated or self._err.truncated,
            seconds=self._loop.time() - self._began,
            memory_met=memory,
            processes_met=processes,
        )


def send_order(slot: SlotHandle, message: bytes, descriptors: Sequence[int]) -> None:
    """The first three descriptors are the streams. Raises OSError where the slot is gone."""
    _let_open(descriptors)
    if len(message) <= _IN_A_MESSAGE:
        socket.send_fds(slot.commands, [message], descriptors)
        return
    large = holding(message)
    try:
        socket.send_fds(slot.commands, [b"@"], [large, *descriptors])
    finally:
        os.close(large)


def _let_open(streams: Sequence[int]) -> None:
    """A program that runs as somebody else may open its pipes as /dev/stdin, /dev/stdout and /dev/stderr, each in its
    own direction. They have no name but in /proc, where nobody finds them who may not look into the program."""
    for descriptor, rights in zip(streams, _BY_NAME, strict=False):  # files may follow
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, rights)


def to_message(request: ProcessRequest, environment: Mapping[str, str]) -> bytes:
    """What a slot is told of a program."""
    return json.dumps(
        {
            "argv": request.argv,
            "environment": {**environment, **request.environment},
            "directory": request.directory,
            "private": request.private_directory,
            "files": list(request.files),
            "memory": request.limits.memory_mb * _MEGABYTE,
            "cpu_seconds": request.limits.cpu_seconds,
            "processes": request.limits.processes,
        }
    ).encode()
