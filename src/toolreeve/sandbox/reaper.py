"""Who sees to it that a server leaves nothing behind? Its minder: a process that starts it and outlives all it started.

When the server ends, when the runtime lets go, or when the runtime is gone in whatever manner, everything that came of
the server is ended, also what has left its session. The server's streams are its own: nothing passes through here.
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
from toolreeve.sandbox.messages import MINDED, STDIN_CLOSED, TERMINATED

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def main(line: int, order: int) -> None:
    """Started with the server's streams as its own, one end of a socket, and a file that says what to start."""
    runtime = socket.socket(fileno=line)
    runtime.set_inheritable(False)
    try:
        life = os.pidfd_open(os.getppid())
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        woken = _wake_for_children()
        pid = _spawn(order)
    except (OSError, ValueError) as problem:
        _tell(runtime, b"F", getattr(problem, "errno", None) or errno.EINVAL)
        os._exit(1)
    try:
        _let_go_of_streams()
        _tell(runtime, b"S", pid, os.pidfd_open(pid))
        status = Reaper(pid, runtime, life, woken).mind()
    finally:
        process_tree.end_descendants()
    _tell(runtime, b"X", status)
    os._exit(0)


def _tell(runtime: socket.socket, kind: bytes, number: int, *descriptors: int) -> None:
    with contextlib.suppress(OSError):  # nobody is left to be told
        socket.send_fds(runtime, [MINDED.pack(kind, number)], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def _wake_for_children() -> int:
    """Readable whenever a child has ended."""
    woken, waking = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return woken


def _spawn(order: int) -> int:
    with open(order, "rb") as file:
        told = json.load(file)
    argv, environment = told["argv"], told["environment"]
    if told["directory"]:
        os.chdir(told["directory"])
    return os.posix_spawn(
        _found(argv[0], environment.get("PATH", "")),
        argv,
        environment,
        setsid=True,
        setsigmask=(),
        setsigdef=(*_IGNORED_BY_PYTHON, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD),
    )


def _found(program: str, path: str) -> str:
    if "/" in program:
        return program
    for folder in path.split(":"):
        candidate = f"{folder}/{program}"
        if folder and os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def _let_go_of_streams() -> None:
    """The server's streams must close when it closes them."""
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)


class Reaper:
    """Waits for the server's end, and brings it about once the runtime has let go."""

    def __init__(self, pid: int, runtime: socket.socket, life: int, woken: int) -> None:
        self._pid, self._woken = pid, woken
        self._letting_go = (runtime.fileno(), life)
        self._awaited = select.poll()
        for descriptor in (*self._letting_go, woken):
            self._awaited.register(descriptor, select.POLLIN)

    def mind(self) -> int:
        """The server's wait status."""
        ways = [(TERMINATED, signal.SIGTERM), (None, signal.SIGKILL)]
        deadline: float | None = None
        while True:
            heard = self._wait(deadline)
            if (status := self._collect()) is not None:
                return status
            if deadline is None and heard.intersection(self._letting_go):
                for descriptor in self._letting_go:
                    self._awaited.unregister(descriptor)
                deadline = time.monotonic() + STDIN_CLOSED
            elif deadline is not None and time.monotonic() >= deadline:
                patience, number = ways.pop(0)
                self._signal(number)
                deadline = None if patience is None else time.monotonic() + patience

    def _wait(self, deadline: float | None) -> set[int]:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000 + 1
        heard = {descriptor for descriptor, _ in self._awaited.poll(patience)}
        if self._woken in heard:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)
        return heard

    def _collect(self) -> int | None:
        """Whatever has ended, orphans that became ours too; the server's status when it is among them."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._pid:
                    return status
                if not pid:
                    break
        return None

    def _signal(self, number: signal.Signals) -> None:
        """The server with its group; it has not been waited for, so both are still its own."""
        for send in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                send(self._pid, number)
