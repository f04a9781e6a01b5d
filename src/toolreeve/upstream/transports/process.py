"""How is a server's process started and ended? Under a minder, which takes the whole tree along whatever happens.

What a server finds in its environment is what was declared for it and the few names that programs cannot do without.
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
_PATIENCE = 10.0
_INHERITED = frozenset(
    "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE TZ TMPDIR "
    "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME "
    "npm_config_cache NPM_CONFIG_CACHE UV_CACHE_DIR".split()
)


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Of our own environment, what every program needs to find its tools and its caches; none of it is secret."""
    return {name: value for name, value in environment.items() if name in _INHERITED or name.startswith("LC_")}


class Streams:
    """The three pipes to a server: ours, which do not block, and the server's, which are closed once it has them."""

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
        """Ours; the server's are handed over whether it starts or not."""
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.close(descriptor)

    def hand_over(self) -> None:
        for descriptor in self.theirs:
            os.close(descriptor)


class ServerProcess(Protocol):
    """A server's process that runs. `ended` says in words how it ended, once nothing of it is left."""

    @property
    def ended(self) -> "asyncio.Future[str]": ...

    def end(self) -> None:
        """Begin to end it: politely at first, surely in the end. Its input is closed already."""
        ...


class ReapedProcess:
    """A server under a minder. It has ended when the minder has told so, or is gone itself."""

    def __init__(self, line: socket.socket, minder: subprocess.Popen[bytes]) -> None:
        self._line, self._minder = line, minder
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._pid, self._pidfd = 0, -1
        self._last_resort: asyncio.TimerHandle | None = None
        self._how = "its minder was killed"
        line.setblocking(False)  # noqa: FBT003
        self._loop.add_reader(line, self._heard)

    def _heard(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._line, REAPER_REPORT.size, 1)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._gone()
            return
        kind, number = REAPER_REPORT.unpack(message)
        if kind == b"S":
            self._pid, self._pidfd = number, descriptors[0]
            _settle(self.started, None)
        elif kind == b"F":
            self._how = f"it cannot be started: {os.strerror(number)}"
        else:
            self._how = ending(number)

    @property
    def ran(self) -> bool:
        return self._pid != 0

    def _gone(self) -> None:
        """The minder ends last. Where it was killed, the server is not left to itself."""
        self._loop.remove_reader(self._line)
        self._line.close()
        if self._last_resort is not None:
            self._last_resort.cancel()
        if self._pidfd >= 0:
            _kill_group(self._pid, self._pidfd)
            os.close(self._pidfd)
        self._minder.wait()
        _settle(self.ended, self._how)
        _settle(self.started, None)

    def end(self) -> None:
        if self._last_resort is None and not self.ended.done():
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)
            self._last_resort = self._loop.call_later(STDIN_CLOSED + TERMINATED + _PATIENCE, self._minder.kill)


async def start(
    argv: Sequence[str], environment: Mapping[str, str], directory: str | None, streams: Streams
) -> ServerProcess:
    """Raises ServerAway where the program cannot be started."""
    if sys.platform != "linux":
        return GroupedProcess(argv, environment, directory, streams)
    child = _minded(argv, environment, directory, streams)
    try:
        await child.started
    except BaseException:  # whoever no longer wants it is not told so before it is gone
        child.end()
        await asyncio.shield(child.ended)
        raise
    if not child.ran:
        raise ServerUnavailable(child.ended.result())
    return child


def _minded(
    argv: Sequence[str], environment: Mapping[str, str], directory: str | None, streams: Streams
) -> ReapedProcess:
    order = json.dumps({"argv": list(argv), "environment": dict(environment), "directory": directory})
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with theirs, tempfile.TemporaryFile() as file:
            file.write(order.encode())
            file.seek(0)
            minder = subprocess.Popen(
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
    return ReapedProcess(ours, minder)


class GroupedProcess:
    """A server where no minder can be: its process group is ended with it."""

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
            self._loop.call_soon_threadsafe(self._over, code)

    def _over(self, code: int) -> None:
        for timer in self._timers:
            timer.cancel()
        _settle(self.ended, f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}")

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        if not self._timers and not self.ended.done():
            for patience, number in ((STDIN_CLOSED, signal.SIGTERM), (STDIN_CLOSED + TERMINATED, signal.SIGKILL)):
                self._timers.append(self._loop.call_later(patience, self._signal, number))


def ending(status: int) -> str:
    """In words, from what the kernel says when it is waited for."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"it ended with exit code {code}"
    return f"it was ended by signal {-code} ({signal.strsignal(-code)})"


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def _kill_group(pid: int, pidfd: int) -> None:
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)  # only while the pid is still its own
        os.killpg(pid, signal.SIGKILL)
