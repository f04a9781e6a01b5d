"""How does the runtime hold a closed place? A session: a yard, and the slots in it that wait for commands.

A slot in which anything had to be killed is never used again. Whoever takes a slot gives it back or drops it.
"""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import socket
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolreeve.sandbox.kernel.cgroup import Bases, ControlGroup
from toolreeve.sandbox.kernel.rlimits import KernelLimits
from toolreeve.sandbox.launch import BUFFER, Launch, Unavailable, launch, unavailable
from toolreeve.sandbox.messages import COVERED, SLOT
from toolreeve.sandbox.plan import Plan

_COMMANDS_EACH = 500
_REMAINS = 64 << 20
_REMOVALS, _REMOVE_EVERY = 100, 0.002
_COVERS_EACH = 30  # two longest paths for each fit into a message
_ENDED = "the yard ended"
_names = itertools.count()


Kind = tuple[str, KernelLimits]
"""What tells slots of a session apart: their network, and the limits that were set when they were locked."""


class SlotHandle:
    """One process that starts programs, one at a time. `apart`: it has namespaces of its own."""

    __slots__ = ("answer", "apart", "commands", "dead", "group", "kind", "pidfd", "used")

    def __init__(self, commands: int, pidfd: int, kind: Kind, group: ControlGroup | None, *, apart: bool) -> None:
        self.commands = socket.socket(fileno=commands)
        self.commands.setblocking(False)  # noqa: FBT003
        self.commands.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self.pidfd, self.kind, self.group, self.apart = pidfd, kind, group, apart
        self.answer: asyncio.Future[bytes] | None = None
        self.used = 0
        self.dead = False

    def kill(self) -> None:
        """End the command with all it started. The answer is that the slot is gone, or how the command ended."""
        self._signal(signal.SIGKILL if self.apart else signal.SIGTERM)

    def kill_surely(self) -> None:
        """For a slot without namespaces that a command has stopped: the yard ends what it leaves."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)

    def close(self) -> None:
        self.kill()
        self.commands.close()
        os.close(self.pidfd)
        self.pidfd = -1


class _Order(NamedTuple):
    """A slot that the yard was asked for."""

    promise: "asyncio.Future[SlotHandle]"
    kind: Kind
    group: ControlGroup | None


class SandboxSession:
    """`busy` is its owner's, who decides when it has to go, as is `lent`, the number of slots that never come back."""

    def __init__(self, plan: Plan, bases: Bases | None, most: int) -> None:
        self.plan = plan
        self.apart = plan.tier == "full"
        self.busy = 0
        self.lent = 0
        self._bases, self._most = bases, most
        self._idle: dict[Kind, list[SlotHandle]] = {}
        self._slots: set[SlotHandle] = set()
        self._ordered: deque[_Order | asyncio.Future[None]] = deque()
        self._covering: set[asyncio.Future[None]] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lingering: list[ControlGroup] = []
        self._yard: Launch | None = None

    async def start(self) -> None:
        """Raises Unavailable, TimeoutError."""
        self._loop = asyncio.get_running_loop()
        if not self.apart:
            scratch = tempfile.mkdtemp(prefix="toolreeve-")
            self.plan = self.plan._replace(scratch=scratch)
            os.chmod(scratch, 0o711)  # noqa: S103  # each slot has a folder of its own in it
        try:
            self._yard = await launch(self.plan)
        except BaseException:
            self._remove_scratch()
            raise
        if self._bases is not None:
            bases = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in self._bases.paths]
            self._yard.send({"bases": True}, bases)
            for base in bases:
                os.close(base)
        self._loop.add_reader(self._yard.line, self._hear)

    @property
    def listener(self) -> socket.socket | None:
        """Of its network, if it has one of its own."""
        return None if self._yard is None else self._yard.listener

    @property
    def alive(self) -> bool:
        return self._yard is not None

    def cover(self, hidden: Sequence[str], guarded: Sequence[str]) -> None:
        """Cover paths that were made or replaced, for every command in here, also those that run.

        Where that fails the place ends, and with it what runs there.
        """
        if not self.apart:
            return
        for begin in range(0, max(len(hidden), len(guarded)), _COVERS_EACH):
            part = slice(begin, begin + _COVERS_EACH)
            if self._yard is None:
                return
            try:
                self._yard.send({"hide": hidden[part], "protect": guarded[part]})
            except OSError:
                self.close()
                return
            done: asyncio.Future[None] = self._loop.create_future()
            self._ordered.append(done)
            self._covering.add(done)
            done.add_done_callback(self._is_covered)

    def _is_covered(self, done: "asyncio.Future[None]") -> None:
        self._covering.discard(done)
        if done.exception() is not None:
            self.close()

    async def covered(self) -> None:
        """When all that it was asked to cover is. Raises Unavailable."""
        while self._covering:
            await asyncio.wait(self._covering)
        if self._yard is None:
            raise Unavailable(_ENDED)

    async def take(self, kind: Kind) -> SlotHandle:
        """A slot that is free, or a new one, or the next to become free."""
        while True:
            if idle := self._idle.get(kind):
                return idle.pop()
            if len(self._slots) + len(self._ordered) < self._most + self.lent:
                return await self._order(kind)
            if not self._drop_of_another(kind):
                turn = self._loop.create_future()
                self._waiting.append(turn)
                await turn

    def _drop_of_another(self, kind: Kind) -> bool:
        """A slot that waits for commands of another kind makes room."""
        for other, idle in self._idle.items():
            if other != kind and idle:
                self.drop(idle[0])
                return True
        return False

    async def _order(self, kind: Kind) -> SlotHandle:
        promise: asyncio.Future[SlotHandle] = self._loop.create_future()
        self._send_order(kind, promise)
        return await promise

    def replace(self, slot: SlotHandle) -> None:
        """Drop a slot whose command was killed, and have another ready: who kills one command will run more."""
        self.drop(slot)
        if self._yard is None or self._idle.get(slot.kind) or self._waiting or self._ordered:
            return
        nobody: asyncio.Future[SlotHandle] = self._loop.create_future()
        nobody.cancel()
        with contextlib.suppress(Unavailable):
            self._send_order(slot.kind, nobody)

    def _send_order(self, kind: Kind, promise: "asyncio.Future[SlotHandle]") -> None:
        if self._yard is None:
            raise Unavailable(_ENDED)
        network, limits = kind
        name = f"toolreeve-{os.getpid()}-{next(_names)}"
        group = None if self._bases is None else ControlGroup(self._bases, name)
        entrances = [] if group is None else group.entrances()
        order = {"network": network, "limits": limits, "name": name, "others": self._group_names()}
        try:
            self._yard.send(order, entrances)
        except OSError:
            self._discard(group)
            raise Unavailable("the yard does not answer") from None
        finally:
            for entrance in entrances:
                os.close(entrance)
        self._ordered.append(_Order(promise, kind, group))

    def _group_names(self) -> list[str]:
        ordered = [order.group for order in self._ordered if isinstance(order, _Order)]
        groups = [*(slot.group for slot in self._slots), *ordered, *self._lingering]
        return [group.name for group in groups if group is not None]

    def _hear(self) -> None:
        """The yard answers in the order it was asked."""
        if self._yard is None:
            return
        message, descriptors = self._yard.receive()
        if not message:
            self.close()
            return
        order = self._ordered.popleft()
        if not isinstance(order, _Order):
            if message == COVERED:
                _set(order)
            else:
                _refuse(order, unavailable(message, _ENDED))
            return
        promise, kind, group = order
        if message != SLOT:
            self._discard(group)
            _refuse(promise, unavailable(message, _ENDED))
            self._next_turn()
            return
        slot = SlotHandle(descriptors[0], descriptors[1], kind, group, apart=self.apart)
        self._slots.add(slot)
        self._loop.add_reader(slot.commands, self._answered, slot)
        if promise.done():
            self._rest(slot)
        else:
            promise.set_result(slot)

    def _answered(self, slot: SlotHandle) -> None:
        try:
            message = slot.commands.recv(64)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        answer, slot.answer = slot.answer, None
        if not message:
            slot.dead = True
            self._loop.remove_reader(slot.commands)
            if slot in self._idle.get(slot.kind, ()):
                self.drop(slot)
        if answer is not None and not answer.done():
            answer.set_result(message)

    def give_back(self, slot: SlotHandle) -> None:
        slot.used += 1
        if self._lingering:
            self._discard(None)
        if slot.dead or slot.used >= _COMMANDS_EACH or (slot.group is not None and slot.group.used() > _REMAINS):
            self.drop(slot)
        elif slot in self._slots:
            self._rest(slot)

    def _rest(self, slot: SlotHandle) -> None:
        self._idle.setdefault(slot.kind, []).append(slot)
        self._next_turn()

    def drop(self, slot: SlotHandle) -> None:
        if slot not in self._slots:
            return
        self._slots.discard(slot)
        idle = self._idle.get(slot.kind, [])
        if slot in idle:
            idle.remove(slot)
        self._loop.remove_reader(slot.commands)
        slot.close()
        self._discard(slot.group)
        self._next_turn()

    def _discard(self, group: ControlGroup | None) -> None:
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
            for slot in idle[: max(0, len(idle) - keep)]:
                self.drop(slot)
        self._discard(None)

    def close(self) -> None:
        """The yard takes everything with it. Whoever waits is told."""
        yard, self._yard = self._yard, None
        if yard is None:
            return
        self._loop.remove_reader(yard.line)
        for slot in list(self._slots):
            answer, slot.answer = slot.answer, None
            if answer is not None and not answer.done():
                answer.set_result(b"")
            self.drop(slot)
        while self._ordered:
            order = self._ordered.popleft()
            if isinstance(order, _Order):
                self._discard(order.group)
                _refuse(order.promise, Unavailable(_ENDED))
            else:
                _refuse(order, Unavailable(_ENDED))
        yard.end()
        self._remove_groups()
        self._remove_scratch()

    def _remove_groups(self) -> None:
        """The kernel lets go of a group a moment after its last process was waited for."""
        for _ in range(_REMOVALS):
            self._discard(None)
            if not self._lingering:
                return
            time.sleep(_REMOVE_EVERY)

    def _remove_scratch(self) -> None:
        if self.plan.scratch:
            shutil.rmtree(self.plan.scratch, ignore_errors=True)


def _set(promise: "asyncio.Future[None]") -> None:
    if not promise.done():
        promise.set_result(None)


def _refuse(promise: "asyncio.Future[Any]", why: Unavailable) -> None:
    if not promise.done():
        promise.set_exception(why)
