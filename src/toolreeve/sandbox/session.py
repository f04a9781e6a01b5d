"""Sandbox session: one supervisor and the pool of its slots.

A slot in which anything had to be killed is never used again. A caller that takes a slot gives it back or drops it.
"""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.kernel.cgroup import Bases, ControlGroup
from toolreeve.sandbox.kernel.rlimits import KernelLimits
from toolreeve.sandbox.launch import BUFFER, SupervisorProcess, Unavailable, launch, open_memory_file, unavailable
from toolreeve.sandbox.messages import COVERED, SLOT
from toolreeve.sandbox.plan import Plan

_COMMANDS_EACH = 500
_MOST_REMAINING = 64 << 20
_REMOVALS = 100
_REMOVE_EVERY = 0.002
_REPLACE_AFTER = 0.005
_ENDED = "the supervisor exited"
_names = itertools.count()


SlotKind = tuple[str, KernelLimits]
"""What distinguishes the slots of a session: their network, and the limits that were set when they were locked."""


class SlotHandle:
    """A slot process, which runs one command at a time. `pidfd` is its init's, or its own without namespaces. `layers`
    are the upper directories of a trial, until they are taken out."""

    __slots__ = (
        "commands",
        "group",
        "has_namespaces",
        "is_dead",
        "is_full",
        "kind",
        "layers",
        "pidfd",
        "report",
        "uses",
    )

    def __init__(
        self,
        commands: int,
        pidfd: int,
        kind: SlotKind,
        group: ControlGroup | None,
        *,
        has_namespaces: bool,
        layers: Sequence[int] = (),
    ) -> None:
        self.layers = layers
        self.commands = socket.socket(fileno=commands)
        self.commands.setblocking(False)  # noqa: FBT003
        self.commands.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self.pidfd = pidfd
        self.kind = kind
        self.group = group
        self.has_namespaces = has_namespaces
        self.report: asyncio.Future[bytes] | None = None
        self.uses = 0
        self.is_dead = False
        self.is_full = False

    def find_full(self) -> bool:
        """Whether nothing fits into its layers any more, which share one file system."""
        if self.layers:
            found = os.fstatvfs(self.layers[0])
            self.is_full = self.is_full or not (found.f_bfree and found.f_ffree)
        return self.is_full

    def terminate(self) -> None:
        """End the command with all it started. The slot then reports how it exited, or is gone."""
        self._signal(signal.SIGKILL if self.has_namespaces else signal.SIGTERM)

    def kill(self) -> None:
        """For a slot without namespaces that a command has stopped: the supervisor kills what it leaves."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)

    def close(self) -> None:
        self.terminate()
        self.commands.close()
        os.close(self.pidfd)
        self.pidfd = -1
        for layer in self.layers:
            os.close(layer)
        self.layers = ()


class _SlotOrder(NamedTuple):
    """A slot that was requested from the supervisor."""

    future: "asyncio.Future[SlotHandle]"
    kind: SlotKind
    group: ControlGroup | None


class _Uncovered(NamedTuple):
    """Paths that wait for their covers."""

    hidden: list[str]
    guarded: list[str]


class SandboxSession:
    """`busy` and `lent` are kept by its owner: commands that run, and slots that will never be given back."""

    def __init__(self, plan: Plan, bases: Bases | None, most: int, request: ProcessRequest) -> None:
        self.plan = plan
        self.confinement = request.confinement
        self.reads = request.reads
        self.has_namespaces = plan.tier == "full"
        self.busy = 0
        self.lent = 0
        self._bases = bases
        self._most = most
        self._idle: dict[SlotKind, list[SlotHandle]] = {}
        self._slots: set[SlotHandle] = set()
        self._requested: deque[_SlotOrder | asyncio.Future[None]] = deque()
        self._covering: set[asyncio.Future[None]] = set()
        self._uncovered = _Uncovered([], [])
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._outdated = 0
        self._lingering: list[ControlGroup] = []
        self._supervisor: SupervisorProcess | None = None

    async def start(self) -> None:
        """Raises Unavailable, TimeoutError."""
        self._loop = asyncio.get_running_loop()
        if not self.has_namespaces:
            scratch = tempfile.mkdtemp(prefix="toolreeve-")
            self.plan = self.plan._replace(scratch=scratch)
            os.chmod(scratch, 0o711)  # noqa: S103  # each slot has its own folder in it
        try:
            self._supervisor = await launch(self.plan)
        except BaseException:
            self._remove_scratch()
            raise
        if self._bases is not None:
            bases = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in self._bases.paths]
            self._supervisor.send({"bases": True}, bases)
            for base in bases:
                os.close(base)
        self._loop.add_reader(self._supervisor.control, self._receive)

    @property
    def listener(self) -> socket.socket | None:
        """Bound in the session's own network, if it has one."""
        return None if self._supervisor is None else self._supervisor.listener

    @property
    def alive(self) -> bool:
        return self._supervisor is not None

    def cover(self, hidden: Sequence[str], guarded: Sequence[str]) -> None:
        """Cover paths that were made or replaced, for every command of the session, also those that run.

        Where that fails the session ends, with all that runs in it.
        """
        if not self.has_namespaces:
            return
        self._uncovered.hidden.extend(hidden)
        self._uncovered.guarded.extend(guarded)
        if not self._covering:
            self._send_covers()

    def _send_covers(self) -> None:
        """All that wait together, in a file of memory: they may be more than fits into a message. One request at a
        time, so that no number of them fills the socket."""
        if self._supervisor is None or not (self._uncovered.hidden or self._uncovered.guarded):
            return
        paths = open_memory_file(json.dumps(self._uncovered).encode())
        self._uncovered = _Uncovered([], [])
        try:
            self._supervisor.send({"covers": True}, [paths])
        except OSError:
            self.close()
            return
        finally:
            os.close(paths)
        self._outdated = sum(isinstance(order, _SlotOrder) for order in self._requested)
        done: asyncio.Future[None] = self._loop.create_future()
        self._requested.append(done)
        self._covering.add(done)
        done.add_done_callback(self._cover_done)

    def _cover_done(self, done: "asyncio.Future[None]") -> None:
        self._covering.discard(done)
        if done.exception() is not None:
            self.close()
        else:
            self._send_covers()

    async def wait_covered(self) -> None:
        """Wait until all requested covers are in place. Raises Unavailable."""
        while self._covering:
            await asyncio.wait(self._covering)
        if self._supervisor is None:
            raise Unavailable(_ENDED)

    def drop_idle(self) -> None:
        """Slots whose layers do not show later covers are not used any more."""
        for idle in list(self._idle.values()):
            for slot in list(idle):
                self.drop(slot)

    def keep_warm(self, kind: SlotKind, count: int, limits: tuple[int, int] | None = None) -> None:
        """Have as many idle slots of a kind ready, now or soon, with these limits of their control groups."""
        ordered = sum(isinstance(order, _SlotOrder) and order.kind == kind for order in self._requested)
        for _ in range(count - ordered - len(self._idle.get(kind, ()))):
            if self._supervisor is None or len(self._slots) + len(self._requested) >= self._most + self.lent:
                return
            unwanted: asyncio.Future[SlotHandle] = self._loop.create_future()
            unwanted.cancel()
            with contextlib.suppress(Unavailable):
                self._send_request(kind, unwanted, limits)

    async def take(self, kind: SlotKind) -> SlotHandle:
        """An idle slot, or a new one, or the next to become idle."""
        while True:
            if idle := self._idle.get(kind):
                return idle.pop()
            if len(self._slots) + len(self._requested) < self._most + self.lent:
                return await self._request_slot(kind)
            if not self._drop_idle_of_another(kind):
                await self._wait_for_turn()

    async def _wait_for_turn(self) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the next one takes this turn
                self._next_turn()
            raise

    def _drop_idle_of_another(self, kind: SlotKind) -> bool:
        """An idle slot of another kind makes room."""
        for other, idle in self._idle.items():
            if other != kind and idle:
                self.drop(idle[0])
                return True
        return False

    async def _request_slot(self, kind: SlotKind) -> SlotHandle:
        future: asyncio.Future[SlotHandle] = self._loop.create_future()
        self._send_request(kind, future)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._return_unused(future.result())
            raise

    def _return_unused(self, slot: SlotHandle) -> None:
        if slot in self._slots:
            self._add_idle(slot)

    def replace(self, slot: SlotHandle) -> None:
        """Drop a slot whose command was killed, and have another ready: a caller that kills one command runs more.

        Where the slot is dead with all that ran in it and nobody waits for one, the caller goes on first."""
        if slot.is_dead and not self._waiters:
            self._loop.call_later(_REPLACE_AFTER, self._replace_now, slot)
        else:
            self._replace_now(slot)

    def _replace_now(self, slot: SlotHandle) -> None:
        self.drop(slot)
        is_last = len(self._slots) <= self.lent
        if is_last and not (self._waiters or self._requested):
            self.keep_warm(slot.kind, 1)

    def _send_request(
        self, kind: SlotKind, future: "asyncio.Future[SlotHandle]", limits: tuple[int, int] | None = None
    ) -> None:
        if self._supervisor is None:
            raise Unavailable(_ENDED)
        network, kernel_limits = kind
        name = f"toolreeve-{os.getpid()}-{next(_names)}"
        group = None if self._bases is None else ControlGroup(self._bases, name)
        if group is not None and limits is not None:
            group.limit(*limits)
        entrances = [] if group is None else group.entrances()
        counters = [] if group is None else group.cpu_counters()
        request = {
            "network": network,
            "limits": kernel_limits,
            "name": name,
            "others": self._group_names(),
            "counters": len(counters),
        }
        try:
            self._supervisor.send(request, [*counters, *entrances])
        except OSError:
            self._discard(group)
            raise Unavailable("the supervisor does not respond") from None
        finally:
            for descriptor in (*counters, *entrances):
                os.close(descriptor)
        self._requested.append(_SlotOrder(future, kind, group))

    def _group_names(self) -> list[str]:
        requested = [order.group for order in self._requested if isinstance(order, _SlotOrder)]
        groups = [*(slot.group for slot in self._slots), *requested, *self._lingering]
        return [group.name for group in groups if group is not None]

    def _receive(self) -> None:
        """The supervisor replies in the order of the requests."""
        if self._supervisor is None:
            return
        message, descriptors = self._supervisor.receive()
        if not message:
            self.close()
            return
        order = self._requested.popleft()
        if not isinstance(order, _SlotOrder):
            if message == COVERED:
                _set(order)
            else:
                _fail(order, unavailable(message, _ENDED))
            return
        future, kind, group = order
        is_outdated = bool(self.plan.layer_mb and self._outdated)
        self._outdated = max(0, self._outdated - 1)
        if message != SLOT:
            self._discard(group)
            _fail(future, unavailable(message, _ENDED))
            self._next_turn()
            return
        commands, pidfd, *layers = descriptors
        slot = SlotHandle(commands, pidfd, kind, group, has_namespaces=self.has_namespaces, layers=layers)
        self._slots.add(slot)
        self._loop.add_reader(slot.commands, self._receive_report, slot)
        if is_outdated:  # made before a cover that its layers hide
            self.drop(slot)
            with contextlib.suppress(Unavailable):
                self._send_request(kind, future)
        elif future.done():
            self._add_idle(slot)
        else:
            future.set_result(slot)

    def _receive_report(self, slot: SlotHandle) -> None:
        try:
            message = slot.commands.recv(64)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        report, slot.report = slot.report, None
        if not message:
            slot.is_dead = True
            self._loop.remove_reader(slot.commands)
            if slot in self._idle.get(slot.kind, ()):
                self.drop(slot)
        if report is not None and not report.done():
            report.set_result(message)

    def give_back(self, slot: SlotHandle) -> None:
        slot.uses += 1
        if self._lingering:
            self._discard(None)
        remaining = 0 if slot.group is None else slot.group.used()
        if slot.is_dead or slot.uses >= _COMMANDS_EACH or remaining > _MOST_REMAINING:
            self.drop(slot)
        elif slot in self._slots:
            self._add_idle(slot)

    def _add_idle(self, slot: SlotHandle) -> None:
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
        slot.group = None
        self._next_turn()

    def _discard(self, group: ControlGroup | None) -> None:
        """A group outlives its last process by a moment, so removing is tried again."""
        if group is not None and not group.close():
            self._lingering.append(group)
        self._lingering = [each for each in self._lingering if not each.remove()]

    def _next_turn(self) -> None:
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def trim(self, keep: int) -> None:
        """Drop idle slots beyond `keep` of each kind."""
        for idle in self._idle.values():
            for slot in idle[: max(0, len(idle) - keep)]:
                self.drop(slot)
        self._discard(None)

    def close(self) -> None:
        """The supervisor takes everything with it. All that wait get Unavailable."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        self._loop.remove_reader(supervisor.control)
        for slot in list(self._slots):
            report, slot.report = slot.report, None
            if report is not None and not report.done():
                report.set_result(b"")
            self.drop(slot)
        while self._requested:
            order = self._requested.popleft()
            if isinstance(order, _SlotOrder):
                self._discard(order.group)
                _fail(order.future, Unavailable(_ENDED))
            else:
                _fail(order, Unavailable(_ENDED))
        while self._waiters:
            self._next_turn()
        supervisor.end()
        self._remove_groups()
        self._remove_scratch()

    def _remove_groups(self) -> None:
        """A group can be removed a moment after its last process was waited for."""
        for _ in range(_REMOVALS):
            self._discard(None)
            if not self._lingering:
                return
            time.sleep(_REMOVE_EVERY)

    def _remove_scratch(self) -> None:
        if self.plan.scratch:
            shutil.rmtree(self.plan.scratch, ignore_errors=True)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _fail(future: "asyncio.Future[Any]", problem: Unavailable) -> None:
    if not future.done():
        future.set_exception(problem)
