"""Reaper: the parent of one MCP server, which outlives everything it started.

When the server exits, when the runtime lets go, or when the runtime is gone in whatever manner, every descendant of the
server is killed, also those that left its session. The server's streams are its own: nothing passes through here.
"""

import contextlib
import errno
import json
import os
import select
import signal
import socket
import time

from toolreeve.sandbox import process_tree
from toolreeve.sandbox.kernel import syscalls
from toolreeve.sandbox.messages import REAPER_REPORT, STDIN_CLOSED, TERMINATED


def main(control: int, order: int) -> None:
    """Started with the server's streams as its own, one end of a socket, and a file that says what to start."""
    runtime = socket.socket(fileno=control)
    runtime.set_inheritable(False)
    try:
        runtime_pidfd = os.pidfd_open(os.getppid())
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        wakeup = _wake_for_children()
        pid = _spawn(order)
    except (OSError, ValueError) as problem:
        _report(runtime, b"F", getattr(problem, "errno", None) or errno.EINVAL)
        os._exit(1)
    try:
        _release_streams()
        _report(runtime, b"S", pid, os.pidfd_open(pid))
        status = Reaper(pid, runtime, runtime_pidfd, wakeup).wait()
    finally:
        process_tree.kill_descendants()
    _report(runtime, b"X", status)
    os._exit(0)


def _report(runtime: socket.socket, kind: bytes, number: int, *descriptors: int) -> None:
    with contextlib.suppress(OSError):  # the runtime may be gone
        socket.send_fds(runtime, [REAPER_REPORT.pack(kind, number)], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def _wake_for_children() -> int:
    """A descriptor that becomes readable whenever a child has exited."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return reading


def _spawn(order: int) -> int:
    with open(order, "rb") as file:
        request = json.load(file)
    argv = request["argv"]
    environment = request["environment"]
    if request["directory"]:
        os.chdir(request["directory"])
    return os.posix_spawn(
        process_tree.find_program(argv[0], environment.get("PATH", "")),
        argv,
        environment,
        setsid=True,
        setsigmask=(),
        setsigdef=(
            *process_tree.IGNORED_BY_PYTHON,
            signal.SIGHUP,
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGCHLD,
        ),
    )


def _release_streams() -> None:
    """The server's streams must close when the server closes them."""
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)


class Reaper:
    """Waits for the server to exit, and makes it exit once the runtime has let go."""

    def __init__(self, pid: int, runtime: socket.socket, runtime_pidfd: int, wakeup: int) -> None:
        self._pid = pid
        self._wakeup = wakeup
        self._runtime = (runtime.fileno(), runtime_pidfd)
        self._poll = select.poll()
        for descriptor in (*self._runtime, wakeup):
            self._poll.register(descriptor, select.POLLIN)

    def wait(self) -> int:
        """The server's wait status."""
        escalation = [(TERMINATED, signal.SIGTERM), (None, signal.SIGKILL)]
        deadline: float | None = None
        while True:
            ready = self._wait_until(deadline)
            if (status := self._collect()) is not None:
                return status
            if deadline is None and ready.intersection(self._runtime):
                for descriptor in self._runtime:
                    self._poll.unregister(descriptor)
                deadline = time.monotonic() + STDIN_CLOSED
            elif deadline is not None and time.monotonic() >= deadline:
                grace, number = escalation.pop(0)
                self._signal(number)
                deadline = None if grace is None else time.monotonic() + grace

    def _wait_until(self, deadline: float | None) -> set[int]:
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000 + 1
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout)}
        if self._wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
        return ready

    def _collect(self) -> int | None:
        """Reap all that exited, adopted orphans too; the server's status when it is among them."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._pid:
                    return status
                if not pid:
                    break
        return None

    def _signal(self, number: signal.Signals) -> None:
        """The server and its group; it has not been waited for, so both ids are still its own."""
        for send in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                send(self._pid, number)
