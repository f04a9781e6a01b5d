"""Slot init: process 1 of a slot's process namespace.

When it exits, the kernel kills all others in there. The slot asks it to kill all other processes after a command; the
runtime kills it to end a command at once.
"""

import contextlib
import os
import signal
import socket
import time
from typing import NoReturn

from toolreeve.sandbox.kernel import identity, mounts, syscalls

_SLOT = 3


def run(slot: socket.socket, uid: int | None) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans are reaped by the kernel
        mounts.mount_processes("/proc")
        slot.send(b"r")
        os.dup2(slot.fileno(), _SLOT)
        os.closerange(_SLOT + 1, os.sysconf("SC_OPEN_MAX"))
        os.closerange(0, _SLOT)
        if uid is not None:
            identity.become(uid)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        with contextlib.suppress(OSError):
            syscalls.drop_capabilities()
        while os.read(_SLOT, 1):
            _kill_all()
            os.write(_SLOT, b"k")
    finally:
        os._exit(0)


def _kill_all() -> None:
    """Repeatedly, because a process that is being forked cannot be killed yet."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.0003)
