"""Starts and ends a server's process, under a reaper.

The reaper ends the whole process tree, whatever happens. A server's environment holds what was declared for it and the
few variables that programs cannot do without.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from toolreeve.sandbox.bootstrap import small_python
from toolreeve.sandbox.messages import REAPER_REPORT, STDIN_CLOSED, TERMINATED
from toolreeve.upstream.transports.transport import ServerUnavailable

T = TypeVar("T")
_KILL_SECONDS = 10.0
_INHERITED = frozenset(
    "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE TZ TMPDIR "
    "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME "
    "npm_config_cache NPM_CONFIG_CACHE UV_CACHE_DIR".split()
)


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of our environment that programs need to find their tools and caches; none of it is secret."""
    return {name: value for name, value in environment.items() if name in _INHERITED or name.startswith("LC_")}


class Streams:
    """The three pipes to a server: our ends do not block, the server's are closed here once it has them."""

    def __init__(self) -> None:
        made: list[int] = []
        try:
            for _ in range(3):
                made += os.pipe()
        except OSError:
            for descriptor in made:
                os.close(descriptor)
            raise
        stdin, self.stdin, self.stdout, stdout, self.stderr, stderr = made
        self.theirs = (stdin, stdout, stderr)
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)

    def close(self) -> None:
        """Close our ends; the server's are handed over whether it starts or not."""
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.close(descriptor)

    def hand_over(self) -> None:
        for descriptor in self.theirs:
            os.close(descriptor)


class ServerProcess(Protocol):
    """A running server. `ended` describes how it ended, once nothing of it is left."""

    @property
    def ended(self) -> "asyncio.Future[str]": ...

    def end(self) -> None:
        """Begin to end it, with SIGTERM first and SIGKILL last. Its input is closed already."""
        ...


class ReapedProcess:
    """A server under a reaper. It has ended when the reaper has reported so, or has ended itself."""

    def __init__(self, channel: socket.socket, reaper: subprocess.Popen[bytes]) -> None:
        self._channel = channel
        self._reaper = reaper
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._pid = 0
        self._pidfd = -1
        self._kill_timer: asyncio.TimerHandle | None = None
        self._outcome = "its reaper was killed"
        channel.setblocking(False)  # noqa: FBT003
        self._loop.add_reader(channel, self._read_report)

    def _read_report(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._channel, REAPER_REPORT.size, 1)
        except BlockingIOError:
            return
        except OSError:
            self._reaper_ended()
            return
        if not message:
            self._reaper_ended()
            return
        kind, number = REAPER_REPORT.unpack(message)
        if kind == b"S":
            self._pid = number
            self._pidfd = descriptors[0]
            _settle(self.started, None)
        elif kind == b"F":
            self._outcome = f"it cannot be started: {os.strerror(number)}"
        else:
            self._outcome = describe_exit(number)

    @property
    def ran(self) -> bool:
        return self._pid != 0

    def _reaper_ended(self) -> None:
        """The reaper ends last. Where it was killed, we kill the server."""
        self._loop.remove_reader(self._channel)
        self._channel.close()
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        if self._pidfd >= 0:
            _kill_group(self._pid, self._pidfd)
            os.close(self._pidfd)
        self._reaper.wait()
        _settle(self.ended, self._outcome)
        _settle(self.started, None)

    def end(self) -> None:
        if self._kill_timer is None and not self.ended.done():
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)
            self._kill_timer = self._loop.call_later(STDIN_CLOSED + TERMINATED + _KILL_SECONDS, self._reaper.kill)


async def start(
    argv: Sequence[str], environment: Mapping[str, str], directory: str | None, streams: Streams
) -> ServerProcess:
    """Raises ServerUnavailable where the program cannot be started."""
    if sys.platform != "linux":
        return GroupedProcess(argv, environment, directory, streams)
    process = _start_reaped(argv, environment, directory, streams)
    try:
        await process.started
    except BaseException:  # a cancelled caller gets control back only after the process has ended
        process.end()
        await asyncio.shield(process.ended)
        raise
    if not process.ran:
        raise ServerUnavailable(process.ended.result())
    return process


def _start_reaped(
    argv: Sequence[str], environment: Mapping[str, str], directory: str | None, streams: Streams
) -> ReapedProcess:
    order = json.dumps({"argv": list(argv), "environment": dict(environment), "directory": directory})
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with theirs, tempfile.TemporaryFile() as file:
            file.write(order.encode())
            file.seek(0)
            reaper = subprocess.Popen(
                small_python("reaper", theirs.fileno(), file.fileno()),
                pass_fds=[theirs.fileno(), file.fileno()],
                stdin=streams.theirs[0],
                stdout=streams.theirs[1],
                stderr=streams.theirs[2],
                env={},
                cwd="/",
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    finally:
        streams.hand_over()
    return ReapedProcess(ours, reaper)


class GroupedProcess:
    """A server on a platform without the reaper: its process group is ended with it."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], directory: str | None, streams: Streams
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=streams.theirs[0],
                stdout=streams.theirs[1],
                stderr=streams.theirs[2],
                env=dict(environment),
                cwd=directory,
                start_new_session=True,
            )
        except OSError as problem:
            raise ServerUnavailable(f"it cannot be started: {problem.strerror}") from None
        finally:
            streams.hand_over()
        self._timers: list[asyncio.TimerHandle] = []
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        code = self._process.wait()
        self._signal(signal.SIGKILL)
        with contextlib.suppress(RuntimeError):  # the loop may have ended before
            self._loop.call_soon_threadsafe(self._exited, code)

    def _exited(self, code: int) -> None:
        for timer in self._timers:
            timer.cancel()
        _settle(self.ended, _describe_code(code))

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        if not self._timers and not self.ended.done():
            for delay, number in ((STDIN_CLOSED, signal.SIGTERM), (STDIN_CLOSED + TERMINATED, signal.SIGKILL)):
                self._timers.append(self._loop.call_later(delay, self._signal, number))


def describe_exit(status: int) -> str:
    """`status` is a wait status."""
    return _describe_code(os.waitstatus_to_exitcode(status))


def _describe_code(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    return f"it was ended by signal {-code} ({signal.strsignal(-code)})"


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def _kill_group(pid: int, pidfd: int) -> None:
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)  # fails unless the pid is still its own
        os.killpg(pid, signal.SIGKILL)
