"""Launch of a supervisor process, with an empty environment and one socket.

It kills everything in its sandbox when that socket closes, which the kernel does for a runtime that was killed.
"""

import array
import asyncio
import contextlib
import json
import os
import socket
import struct
import subprocess
from collections.abc import Sequence

from toolreeve.sandbox.bootstrap import small_python
from toolreeve.sandbox.messages import UNSUPPORTED
from toolreeve.sandbox.plan import Plan

START_TIMEOUT = 10.0
BUFFER = 1 << 20
_ANCILLARY = socket.CMSG_LEN(4 * 16)


class Unavailable(Exception):  # not a ToolError: it describes the machine, not a call
    """No sandbox, slot or cover could be made. `is_unsupported`: this machine lacks a mechanism; else it may pass."""

    def __init__(self, reason: str, *, is_unsupported: bool = False) -> None:
        super().__init__(reason)
        self.is_unsupported = is_unsupported


def unavailable(reply: bytes, default: str) -> Unavailable:
    """The error for a supervisor that replied with a failure, or not at all."""
    return Unavailable(reply[1:].decode(errors="replace") or default, is_unsupported=reply[:1] == UNSUPPORTED)


class SupervisorProcess:
    """`listener` is bound inside the sandbox's network, where it has one of its own."""

    def __init__(self, control: socket.socket, launcher: subprocess.Popen[bytes]) -> None:
        self.control = control
        self.listener: socket.socket | None = None
        self._launcher = launcher
        self._pid = launcher.pid
        self._ended = False

    async def wait_until_ready(self) -> None:
        """First comes the supervisor's pid, then that its sandbox is built. Raises Unavailable."""
        message, _ = await self._next_message()
        if len(message) == 4:
            (self._pid,) = struct.unpack("=I", message)
            if self._pid != self._launcher.pid:
                self._launcher.wait()
            message, descriptors = await self._next_message()
            if message == b"{}":
                self.listener = socket.socket(fileno=descriptors[0]) if descriptors else None
                return
        raise unavailable(message, "the supervisor exited while it built the sandbox")

    async def _next_message(self) -> tuple[bytes, list[int]]:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self.control, _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(self.control)
        return self.receive()

    def receive(self) -> tuple[bytes, list[int]]:
        """A message with its descriptors; empty when the supervisor is gone."""
        try:
            message, extra, _, _ = self.control.recvmsg(4096, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return b"", []
        return message, list(array.array("i", extra[0][2])) if extra else []

    def send(self, message: object, descriptors: Sequence[int] = ()) -> None:
        socket.send_fds(self.control, [json.dumps(message).encode()], descriptors)

    def end(self) -> None:
        """Close the socket, and wait until the supervisor has exited with all in it: a matter of milliseconds."""
        if self._ended:
            return
        self._ended = True
        self.control.close()
        if self.listener is not None:
            self.listener.close()
        if self._pid != self._launcher.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        self._launcher.wait()


def open_memory_file(data: bytes) -> int:
    """A descriptor to read the data from. Unlike a pipe it needs no writer that waits for a program to read."""
    descriptor = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


async def launch(plan: Plan) -> SupervisorProcess:
    """Raises Unavailable with the reason why the sandbox cannot be built."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    plan_file = open_memory_file(plan.to_json())
    with theirs, contextlib.ExitStack() as stack:
        stack.callback(os.close, plan_file)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        launcher = subprocess.Popen(  # noqa: ASYNC220  # by vfork: a millisecond, whatever our size
            small_python("supervisor", theirs.fileno(), plan_file),
            pass_fds=[theirs.fileno(), plan_file],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            process_group=0,  # an interrupt at the terminal is for the runtime, which ends the sandbox in order
        )
    supervisor = SupervisorProcess(ours, launcher)
    try:
        ours.setblocking(False)  # noqa: FBT003
        await asyncio.wait_for(supervisor.wait_until_ready(), START_TIMEOUT)
    except BaseException:
        supervisor.end()
        raise
    return supervisor


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
