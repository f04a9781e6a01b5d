"""Who ends what a command left behind? The keeper: process 1 of a slot's namespace. When it ends, all in there ends.

It is told to by the slot after a command, and killed by the runtime when a command must end at once.
"""

import contextlib
import os
import signal
import socket
import time
from typing import NoReturn

from toolreeve.sandbox.kernel import identity, mounts, syscalls

_LINE = 3


def run(line: socket.socket, uid: int | None) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans are collected by the kernel
        mounts.mount_processes("/proc")
        line.send(b"r")
        os.dup2(line.fileno(), _LINE)
        os.closerange(_LINE + 1, os.sysconf("SC_OPEN_MAX"))
        os.closerange(0, _LINE)
        if uid is not None:
            identity.become(uid)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        with contextlib.suppress(OSError):
            syscalls.drop_capabilities()
        while os.read(_LINE, 1):
            _end_all()
            os.write(_LINE, b"k")
    finally:
        os._exit(0)


def _end_all() -> None:
    """Again and again, for what is being forked while we look is not there to be killed yet."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.0003)
