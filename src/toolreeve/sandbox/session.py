"""How does the runtime hold a closed place? A session: the yard's other end, and the slots that wait for commands.

A slot in which anything had to be killed is never used again. Whoever takes a slot gives it back or drops it.
"""

import array
import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from pathlib import Path

from toolreeve.sandbox.cgroup import Bases, Group
from toolreeve.sandbox.plan import Plan

PATIENCE = 10.0
_COMMANDS_EACH = 500
_REMAINS = 64 << 20
_BUFFER = 1 << 20
_names = itertools.count()
# The yard needs none of the package but its own folder: a package of that name is made up around it.
_BOOT = """
import sys, types
package = types.ModuleType("toolreeve")
package.__path__ = [sys.argv[2]]
sys.modules["toolreeve"] = package
from toolreeve.sandbox.yard import main
main(int(sys.argv[1]))
"""


class Unavailable(Exception):  # noqa: N818  # says what is the matter with the machine
    """The kernel does not let such a place be built here."""


class Slot:
    """One process that starts programs, one at a time."""

    __slots__ = ("answer", "commands", "group", "network", "pidfd", "used")

    def __init__(self, commands: socket.socket, pidfd: int, network: str, group: Group | None) -> None:
        self.commands, self.pidfd, self.network, self.group = commands, pidfd, network, group
        self.answer: asyncio.Future[bytes] | None = None
        self.used = 0

    def kill(self) -> None:
        """End the command with all it started. The answer is that the slot is gone, or how the command ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)


class Session:
    def __init__(self, plan: Plan, bases: Bases | None, most: int) -> None:
        self.plan = plan
        self.listener: socket.socket | None = None
        self.used_at = 0.0
        self.busy = 0
        self._bases = bases
        self._most = most
        self._idle: dict[str, list[Slot]] = {}
        self._all: set[Slot] = set()
        self._count = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._ordered: deque[tuple[asyncio.Future[Slot], str, Group | None]] = deque()
        self._lingering: list[Group] = []
        self._yard = 0
        self._line: socket.socket | None = None

    async def start(self) -> None:
        """Raises Unavailable with the reason."""
        self._loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line = ours
        with theirs:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, str(theirs.fileno()), str(Path(__file__).parent.parent)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
            )
        ours.send(self.plan.to_json())
        ours.setblocking(False)
        try:
            await asyncio.wait_for(self._greet(ours, launcher), PATIENCE)
        except BaseException:
            self.close()
            raise
        self._loop.add_reader(ours, self._hear)

    async def _greet(self, line: socket.socket, launcher: subprocess.Popen[bytes]) -> None:
        """First the yard's pid, then that the place is built, with the listener of its network."""
        message, _ = await self._receive(line)
        if len(message) == 4:
            (self._yard,) = struct.unpack("=I", message)
            if self._yard != launcher.pid:
                launcher.wait()
            message, descriptors = await self._receive(line)
            if message == b"{}":
                self.listener = socket.socket(fileno=descriptors[0]) if descriptors else None
                self._hand_over_groups(line)
                return
        else:
            self._yard = 0
            launcher.wait()
        raise Unavailable(json.loads(message)["problem"] if message else "the yard ended while it was being built")

    def _hand_over_groups(self, line: socket.socket) -> None:
        if self._bases is None:
            return
        bases = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in self._bases.paths]
        socket.send_fds(line, [b'{"groups": true}'], bases)
        for base in bases:
            os.close(base)

    async def _receive(self, line: socket.socket) -> tuple[bytes, list[int]]:
        readable = self._loop.create_future()
        self._loop.add_reader(line, lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            self._loop.remove_reader(line)
        return _receive(line)

    def _hear(self) -> None:
        """The yard answers in the order it was asked."""
        if self._line is None:
            return
        message, descriptors = _receive(self._line)
        if not message:
            self._lost()
            return
        promise, network, group = self._ordered.popleft()
        if message != b"slot":
            self._count -= 1
            self._discard(group)
            _settle(promise, Unavailable(message[4:].decode(errors="replace")))
            return
        slot = Slot(socket.socket(fileno=descriptors[0]), descriptors[1], network, group)
        slot.commands.setblocking(False)
        slot.commands.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self._all.add(slot)
        self._loop.add_reader(slot.commands, self._answered, slot)
        if promise.done():
            self._rest(slot)
        else:
            promise.set_result(slot)

    def _lost(self) -> None:
        for promise, _, group in self._ordered:
            self._discard(group)
            _settle(promise, Unavailable("the yard ended"))
        self._ordered.clear()
        self.close()

    def _answered(self, slot: Slot) -> None:
        try:
            message = slot.commands.recv(64)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        answer, slot.answer = slot.answer, None
        if not message:
            self._loop.remove_reader(slot.commands)
        if answer is not None and not answer.done():
            answer.set_result(message)
        elif not message:
            self.drop(slot)

    @property
    def alive(self) -> bool:
        return self._line is not None

    async def take(self, network: str) -> Slot:
        while True:
            idle = self._idle.get(network)
            if idle:
                return idle.pop()
            if self._count < self._most:
                return await self._order(network)
            turn = self._loop.create_future()
            self._waiting.append(turn)
            await turn

    async def _order(self, network: str) -> Slot:
        if self._line is None:
            raise Unavailable("the yard ended")
        name = f"toolreeve-{os.getpid()}-{next(_names)}"
        group = None if self._bases is None else Group(self._bases, name)
        entrances = [] if group is None else group.entrances()
        promise: asyncio.Future[Slot] = self._loop.create_future()
        try:
            order = json.dumps({"network": network, "name": name}).encode()
            socket.send_fds(self._line, [order], entrances)
        except OSError:
            self._discard(group)
            raise Unavailable("the yard does not answer") from None
        finally:
            for entrance in entrances:
                os.close(entrance)
        self._count += 1
        self._ordered.append((promise, network, group))
        return await promise

    def give_back(self, slot: Slot) -> None:
        slot.used += 1
        if slot.used >= _COMMANDS_EACH or (slot.group is not None and slot.group.used() > _REMAINS):
            self.drop(slot)
        elif slot in self._all:
            self._rest(slot)

    def _rest(self, slot: Slot) -> None:
        self._idle.setdefault(slot.network, []).append(slot)
        self._next_turn()

    def drop(self, slot: Slot) -> None:
        if slot not in self._all:
            return
        self._all.discard(slot)
        self._count -= 1
        slot.kill()
        self._loop.remove_reader(slot.commands)
        slot.commands.close()
        os.close(slot.pidfd)
        idle = self._idle.get(slot.network, [])
        if slot in idle:
            idle.remove(slot)
        self._discard(slot.group)
        self._next_turn()

    def _discard(self, group: Group | None) -> None:
        """A group outlives its last process by a moment, so those that would not go are tried again."""
        if group is not None and not group.close():
            self._lingering.append(group)
        self._lingering = [each for each in self._lingering if not each.remove()]

    def _next_turn(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def trim(self, keep: int) -> None:
        """Let slots go that nobody needs at the moment."""
        for idle in self._idle.values():
            for slot in idle[:-keep] if keep else list(idle):
                self.drop(slot)

    def close(self) -> None:
        """The yard sees the end of its line and takes everything with it."""
        line, self._line = self._line, None
        if line is None:
            return
        self._loop.remove_reader(line)
        line.close()
        for slot in list(self._all):
            if slot.answer is not None and not slot.answer.done():
                slot.answer.set_result(b"")
            self.drop(slot)
        if self.listener is not None:
            self.listener.close()
        self._collect()

    def _collect(self) -> None:
        """Wait for the yard, which ends when all in it has ended: a matter of milliseconds."""
        if self._yard:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._yard, 0)
            self._yard = 0
        self._discard(None)


def _receive(line: socket.socket) -> tuple[bytes, list[int]]:
    try:
        message, extra, _, _ = line.recvmsg(4096, socket.CMSG_LEN(4 * 4), socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return b"", []
    return message, list(array.array("i", extra[0][2])) if extra else []


def _settle(promise: "asyncio.Future[Slot]", problem: Exception) -> None:
    if not promise.done():
        promise.set_exception(problem)
