"""Supervisor: a small process that builds one sandbox and forks its slots.

It is process 1 of the sandbox's process namespace: when the runtime goes away, in whatever manner, the supervisor exits
and the kernel kills everything in it. It never starts a thread and never runs a program itself.
"""

import array
import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import time
from collections import deque
from typing import NamedTuple

from toolreeve.sandbox import process_tree, scratch, slot
from toolreeve.sandbox.kernel import identity, mounts, syscalls
from toolreeve.sandbox.kernel.covers import Covers
from toolreeve.sandbox.messages import COVERED, SLOT, TRANSIENT, failure
from toolreeve.sandbox.plan import Plan

PROXY_PORT = 3128
MESSAGE = 1 << 18
_KILL_ORPHANS_EVERY = 0.2
_REMOVALS = 200
_REMOVE_EVERY = 0.005
_SIOCSIFFLAGS = 0x8914
_UP_AND_RUNNING = 0x41
_NAMESPACES = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWPID


def main(control: int, plan_file: int) -> None:
    """Started by the runtime with its end of a socket, and a file with the plan."""
    runtime = socket.socket(fileno=control)
    runtime.set_inheritable(False)
    try:
        os.umask(0o022)
        with open(plan_file, "rb") as file:
            plan = Plan.from_json(file.read())
        if plan.tier != "limits" and not syscalls.KNOWN_MACHINE:
            raise OSError("the system calls of this CPU architecture are not known")
        runtime_pidfd = os.pidfd_open(os.getppid())
        if plan.tier == "full":
            mapping = _enter_namespaces(plan, runtime)
            listener, covers = _build_root(plan, mapping)
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)  # for all slots
            _serve(runtime, runtime_pidfd, Supervisor(runtime, plan, covers), listener)
        else:
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
            runtime.send(struct.pack("=I", os.getpid()))
            _serve(runtime, runtime_pidfd, Supervisor(runtime, plan, None), None)
    except Exception as problem:
        with contextlib.suppress(OSError):
            runtime.send(failure(problem))
        os._exit(1)
    os._exit(0)


def _enter_namespaces(plan: Plan, runtime: socket.socket) -> int:
    """Continue as process 1 of new namespaces and as a child of the runtime; the process in between exits."""
    flags = _NAMESPACES if plan.network == "host" else _NAMESPACES | syscalls.CLONE_NEWNET
    mapping = -1
    if plan.uid is None:
        identity.enter_user_namespace(flags)
    else:
        mapping = identity.mapping_namespace(plan.owner, plan.uid)
        syscalls.unshare(flags)
    reading, writing = os.pipe()
    pid, _ = syscalls.clone(syscalls.CLONE_PARENT)
    if pid:
        runtime.send(struct.pack("=I", pid))
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)  # until the process in between has sent our pid, and exited
    os.close(reading)
    return mapping


def _build_root(plan: Plan, mapping: int) -> tuple[socket.socket | None, Covers]:
    """The listener of the guarded network is made first, while we still have the capabilities to."""
    listener = None
    if plan.network != "host":
        _raise_loopback()
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", PROXY_PORT))
        listener.listen(128)
    syscalls.set_host_name(b"sandbox")
    covers = mounts.build(plan, mapping)
    if listener is not None:
        _limit_tcp_buffers()
    if mapping >= 0:
        os.close(mapping)
    return listener, covers


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


def _limit_tcp_buffers() -> None:
    """Both buffers of a connection in our network together are no larger than one of a Unix socket."""
    for direction in ("r", "w"):
        identity.write(f"/proc/sys/net/ipv4/tcp_{direction}mem", "4096 65536 98304")


def _serve(
    runtime: socket.socket, runtime_pidfd: int, supervisor: "Supervisor", listener: socket.socket | None
) -> None:
    descriptors = [] if listener is None else [listener.fileno()]
    socket.send_fds(runtime, [b"{}"], descriptors)
    if listener is not None:
        listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps slots that exit
    gc.collect()
    gc.freeze()
    gc.disable()
    timeout = None if supervisor.has_namespaces else _KILL_ORPHANS_EVERY
    while True:
        ready = _wait_readable([runtime.fileno(), runtime_pidfd, *supervisor.next_status()], timeout)
        if runtime_pidfd in ready:
            break
        if runtime.fileno() in ready and not supervisor.handle_request():
            break
        if not ready:
            process_tree.kill_descendants(supervisor.slots)
        for status in supervisor.next_status():
            if status in ready:
                supervisor.report_slot()
    supervisor.end()


def _wait_readable(descriptors: list[int], timeout: float | None) -> list[int]:
    """By `poll`, because descriptors from the runtime may be beyond those that `select` can wait for."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(None if timeout is None else timeout * 1000)]


class _LockingSlot(NamedTuple):
    """A slot that is giving up its rights: the socket of its status report, and the runtime's end of its commands."""

    status: socket.socket
    commands: socket.socket


class Supervisor:
    """Serves the runtime: forks slots, covers paths, and removes control groups where the runtime no longer can.

    Slots are locked concurrently, but never while a path is being covered: each has all covers or gets them.
    """

    def __init__(self, runtime: socket.socket, plan: Plan, covers: Covers | None) -> None:
        self.slots: set[int] = set()
        self.has_namespaces = plan.tier == "full"
        self._runtime = runtime
        self._plan = plan
        self._covers = covers
        self._filters = slot.filters(plan)
        self._bases: list[int] = []
        self._groups: set[str] = set()
        self._locking: deque[_LockingSlot] = deque()

    def handle_request(self) -> bool:
        """False when the runtime is gone."""
        message, descriptors = _receive(self._runtime)
        if not message:
            return False
        request = json.loads(message)
        if "bases" in request:
            self._bases = descriptors
        elif "covers" in request:
            while self._locking:
                self.report_slot()
            with open(descriptors[0], "rb") as file:
                hidden, guarded = json.load(file)
            self._runtime.send(self._cover(hidden, guarded))
        else:
            self._groups = {*request["others"], request["name"]}
            counters = request["counters"]
            limits = slot.SlotLimits(request["limits"], descriptors[counters:], descriptors[:counters])
            self._fork_slot(self._filters.get(request["network"]), limits)
        return True

    def _cover(self, hidden: list[str], guarded: list[str]) -> bytes:
        """In every slot as well: mounts made here propagate to them."""
        if self._covers is None:
            return COVERED
        try:
            self._covers.hide(hidden)
            self._covers.protect(guarded, fixed=False)
        except OSError as problem:
            return failure(problem)
        return COVERED

    def _fork_slot(self, code: bytes | None, limits: slot.SlotLimits) -> None:
        commands, slot_commands = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        status, slot_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            others = [end for locking in self._locking for end in locking]
            for each in (self._runtime, commands, status, *others):
                each.close()
            for base in self._bases:
                os.close(base)
            if self._covers is not None:
                self._covers.close()
            slot.run(slot_commands, slot_status, self._plan, code, limits)
        self.slots.add(pid)
        for each in (slot_commands, slot_status):
            each.close()
        for descriptor in (*limits.groups, *limits.counters):
            os.close(descriptor)
        self._locking.append(_LockingSlot(status, commands))

    def next_status(self) -> list[int]:
        """The descriptor that becomes readable when the oldest requested slot is locked; empty where none is."""
        return [self._locking[0].status.fileno()] if self._locking else []

    def report_slot(self) -> None:
        """Send the runtime the socket of the next slot and the pidfd that kills all it runs, or why there is none."""
        status, commands = self._locking.popleft()
        report, descriptors = _receive(status)
        status.close()
        if report == b"ready":
            socket.send_fds(self._runtime, [SLOT], [commands.fileno(), *descriptors])
        else:
            self._runtime.send(report or TRANSIENT + b"the slot exited while it was being locked")
        commands.close()
        for descriptor in descriptors:
            os.close(descriptor)

    def end(self) -> None:
        """Leave nothing behind: no process, no control group, no file."""
        if self.has_namespaces:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # SIGCHLD is ignored: this returns when the last one is gone
                os.waitpid(-1, 0)
        else:
            process_tree.kill_descendants()
        for base in self._bases:
            for name in self._groups:
                _remove_group(name, base)
        if self._plan.scratch:
            with contextlib.suppress(OSError):
                scratch.wipe(self._plan.scratch)
                os.rmdir(self._plan.scratch)


def _remove_group(name: str, base: int) -> None:
    """A group can be removed a moment after its last process was waited for."""
    for _ in range(_REMOVALS):
        try:
            os.rmdir(name, dir_fd=base)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(_REMOVE_EVERY)
        else:
            return


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    message, extra, _, _ = connection.recvmsg(MESSAGE, socket.CMSG_LEN(4 * 16), socket.MSG_CMSG_CLOEXEC)
    return message, list(array.array("i", extra[0][2])) if extra else []
