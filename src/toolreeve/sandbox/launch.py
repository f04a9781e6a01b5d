"""How is a yard started and ended? As a small Python of its own, with an empty environment and one end of a socket.

It takes everything in it along when that socket closes, which the kernel does for a runtime that was killed.
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
from toolreeve.sandbox.messages import LACKING
from toolreeve.sandbox.plan import Plan

PATIENCE = 10.0
BUFFER = 1 << 20
_ROOM = socket.CMSG_LEN(4 * 4)


class Unavailable(Exception):  # says what is the matter with the machine
    """No place, slot or cover could be made. `lacking`: this machine does not have what it takes; else it may pass."""

    def __init__(self, reason: str, *, lacking: bool = False) -> None:
        super().__init__(reason)
        self.lacking = lacking


def unavailable(answer: bytes, silence: str) -> Unavailable:
    """What a yard answered instead of doing as it was asked, or that it did not."""
    return Unavailable(answer[1:].decode(errors="replace") or silence, lacking=answer[:1] == LACKING)


class Launch:
    """A yard that runs. `listener` is bound inside its network, where it has one of its own."""

    def __init__(self, line: socket.socket, launcher: subprocess.Popen[bytes]) -> None:
        self.line = line
        self.listener: socket.socket | None = None
        self._launcher = launcher
        self._pid = launcher.pid
        self._ended = False

    async def greet(self) -> None:
        """First comes the yard's pid, then that the place is built. Raises Unavailable."""
        message, _ = await self._hear()
        if len(message) == 4:
            (self._pid,) = struct.unpack("=I", message)
            if self._pid != self._launcher.pid:
                self._launcher.wait()
            message, descriptors = await self._hear()
            if message == b"{}":
                self.listener = socket.socket(fileno=descriptors[0]) if descriptors else None
                return
        raise unavailable(message, "the yard ended while it was being built")

    async def _hear(self) -> tuple[bytes, list[int]]:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self.line, _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(self.line)
        return self.receive()

    def receive(self) -> tuple[bytes, list[int]]:
        """A message with its descriptors; nothing when the yard is gone."""
        try:
            message, extra, _, _ = self.line.recvmsg(4096, _ROOM, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return b"", []
        return message, list(array.array("i", extra[0][2])) if extra else []

    def send(self, message: object, descriptors: Sequence[int] = ()) -> None:
        socket.send_fds(self.line, [json.dumps(message).encode()], descriptors)

    def end(self) -> None:
        """Let go, and wait until the yard has ended with all in it: a matter of milliseconds."""
        if self._ended:
            return
        self._ended = True
        self.line.close()
        if self.listener is not None:
            self.listener.close()
        if self._pid != self._launcher.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        self._launcher.wait()


def holding(data: bytes) -> int:
    """A descriptor to read the data from: nobody has to write it, so nobody waits for a program that never reads."""
    descriptor = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


async def launch(plan: Plan) -> Launch:
    """Raises Unavailable with the reason why the place cannot be built."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    planned = holding(plan.to_json())
    with theirs, contextlib.ExitStack() as ending:
        ending.callback(os.close, planned)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        launcher = subprocess.Popen(  # noqa: ASYNC220  # by vfork: a millisecond, whatever our size
            small_python("supervisor", theirs.fileno(), planned),
            pass_fds=[theirs.fileno(), planned],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
        )
    started = Launch(ours, launcher)
    try:
        ours.setblocking(False)  # noqa: FBT003
        await asyncio.wait_for(started.greet(), PATIENCE)
    except BaseException:
        started.end()
        raise
    return started


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
