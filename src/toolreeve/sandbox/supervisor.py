"""Who holds a closed place? The yard: one small process that builds it once and then only lets slots out into it.

It is process 1 of the place's process namespace: when the runtime goes away, in whatever manner, the yard ends and the
kernel ends everything in it. It never starts a thread and never runs a program itself.
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

from toolreeve.sandbox import process_tree, slot
from toolreeve.sandbox.kernel import identity, mounts, syscalls
from toolreeve.sandbox.kernel.covers import Covers
from toolreeve.sandbox.messages import COVERED, PASSING, SLOT, failure
from toolreeve.sandbox.plan import Plan

PROXY_PORT = 3128
MESSAGE = 1 << 18
_ORPHANS_EVERY = 0.2
_REMOVALS, _REMOVE_EVERY = 200, 0.005
_SIOCSIFFLAGS = 0x8914
_UP_AND_RUNNING = 0x41
_APART = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWPID


def main(descriptor: int, planned: int) -> None:
    """Started by the runtime with its end of a socket, and a file with the plan."""
    runtime = socket.socket(fileno=descriptor)
    runtime.set_inheritable(False)
    try:
        os.umask(0o022)
        with open(planned, "rb") as file:
            plan = Plan.from_json(file.read())
        if plan.tier != "limits" and not syscalls.KNOWN_MACHINE:
            raise OSError("the system calls of this kind of machine are not known")
        life = os.pidfd_open(os.getppid())
        if plan.tier == "full":
            mapping = _go_apart(plan, runtime)
            listener, covers = _open_place(plan, mapping)
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)  # for all slots
            _serve(runtime, life, Supervisor(runtime, plan, covers), listener)
        else:
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
            runtime.send(struct.pack("=I", os.getpid()))
            _serve(runtime, life, Supervisor(runtime, plan, None), None)
    except Exception as problem:
        with contextlib.suppress(OSError):
            runtime.send(failure(problem))
        os._exit(1)
    os._exit(0)


def _go_apart(plan: Plan, runtime: socket.socket) -> int:
    """Into namespaces of our own, as their process 1 and as a child of the runtime; the middle process ends."""
    flags = _APART if plan.network == "host" else _APART | syscalls.CLONE_NEWNET
    mapping = -1
    if plan.uid is None:
        identity.enter_user_namespace(flags)
    else:
        mapping = identity.mapping_namespace(plan.owner, plan.uid)
        syscalls.unshare(flags)
    told, telling = os.pipe()
    pid, _ = syscalls.clone(syscalls.CLONE_PARENT)
    if pid:
        runtime.send(struct.pack("=I", pid))
        os._exit(0)
    os.close(telling)
    os.read(told, 1)  # until the middle process has told who we are, and ended
    os.close(told)
    return mapping


def _open_place(plan: Plan, mapping: int) -> tuple[socket.socket | None, Covers]:
    """Build the place; the listener of the guarded network is made while we are still able to."""
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
        _bound_buffers()
    if mapping >= 0:
        os.close(mapping)
    return listener, covers


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


def _bound_buffers() -> None:
    """The buffers of a connection in our network: both together are no larger than one of a Unix socket."""
    for direction in ("r", "w"):
        identity.write(f"/proc/sys/net/ipv4/tcp_{direction}mem", "4096 65536 98304")


def _serve(runtime: socket.socket, life: int, yard: "Supervisor", listener: socket.socket | None) -> None:
    handed = [] if listener is None else [listener.fileno()]
    socket.send_fds(runtime, [b"{}"], handed)
    if listener is not None:
        listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # slots that end leave nothing to be collected
    gc.collect()
    gc.freeze()
    gc.disable()
    patience = None if yard.apart else _ORPHANS_EVERY
    while True:
        heard = _readable([runtime.fileno(), life, *yard.next_told()], patience)
        if life in heard or (runtime.fileno() in heard and not yard.obey()):
            break
        if not heard:
            process_tree.end_descendants(yard.slots)
        for told in yard.next_told():
            if told in heard:
                yard.answer()
    yard.end()


def _readable(descriptors: list[int], patience: float | None) -> list[int]:
    """By `poll`, for the runtime may have handed us descriptors beyond those that `select` can wait for."""
    awaited = select.poll()
    for descriptor in descriptors:
        awaited.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in awaited.poll(None if patience is None else patience * 1000)]


class _Locking(NamedTuple):
    """A slot that is being locked: what it will tell of itself, and the runtime's end of its socket."""

    told: socket.socket
    theirs: socket.socket


class Supervisor:
    """What the runtime asks for: slots, covers, and the removal of control groups where it no longer can.

    Slots are locked side by side, and never while a path is being covered: each has all covers or gets them.
    """

    def __init__(self, runtime: socket.socket, plan: Plan, covers: Covers | None) -> None:
        self.slots: set[int] = set()
        self.apart = plan.tier == "full"
        self._runtime, self._plan, self._covers = runtime, plan, covers
        self._filters = slot.filters(plan)
        self._bases: list[int] = []
        self._groups: set[str] = set()
        self._locking: deque[_Locking] = deque()

    def obey(self) -> bool:
        """False when the runtime is gone."""
        message, descriptors = _receive(self._runtime)
        if not message:
            return False
        request = json.loads(message)
        if "bases" in request:
            self._bases = descriptors
        elif "hide" in request:
            while self._locking:
                self.answer()
            self._runtime.send(self._cover(request["hide"], request["protect"]))
        else:
            self._groups = {*request["others"], request["name"]}
            self._let_out(self._filters.get(request["network"]), slot.SlotLimits(request["limits"], descriptors))
        return True

    def _cover(self, hidden: list[str], guarded: list[str]) -> bytes:
        """In every slot as well: what is mounted here is mounted there."""
        if self._covers is None:
            return COVERED
        try:
            self._covers.hide(hidden)
            self._covers.protect(guarded, fixed=False)
        except OSError as problem:
            return failure(problem)
        return COVERED

    def _let_out(self, code: bytes | None, bounds: slot.SlotLimits) -> None:
        """Fork a slot."""
        theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            others = [end for locking in self._locking for end in locking]
            for each in (self._runtime, theirs, told, *others):
                each.close()
            for base in self._bases:
                os.close(base)
            slot.run(ours, telling, self._plan, code, bounds)
        self.slots.add(pid)
        for each in (ours, telling):
            each.close()
        for group in bounds.groups:
            os.close(group)
        self._locking.append(_Locking(told, theirs))

    def next_told(self) -> list[int]:
        """What becomes readable when the slot that is to be answered for next is locked; empty where there is none."""
        return [self._locking[0].told.fileno()] if self._locking else []

    def answer(self) -> None:
        """The runtime gets the socket of the next slot and the pidfd that ends all it runs, or why there is none."""
        told, theirs = self._locking.popleft()
        answer, descriptors = _receive(told)
        told.close()
        if answer == b"ready":
            socket.send_fds(self._runtime, [SLOT], [theirs.fileno(), *descriptors])
        else:
            self._runtime.send(answer or PASSING + b"the slot ended while it was being locked")
        theirs.close()
        for descriptor in descriptors:
            os.close(descriptor)

    def end(self) -> None:
        """Leave nothing behind: no process, no control group, no file."""
        if self.apart:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # children are ignored: this returns when the last is gone
                os.waitpid(-1, 0)
        else:
            process_tree.end_descendants()
        for base in self._bases:
            for name in self._groups:
                _remove_group(name, base)
        if self._plan.scratch:
            with contextlib.suppress(OSError):
                process_tree.wipe(self._plan.scratch)
                os.rmdir(self._plan.scratch)


def _remove_group(name: str, base: int) -> None:
    """The kernel lets go of a group a moment after its last process was waited for."""
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
    message, extra, _, _ = connection.recvmsg(MESSAGE, socket.CMSG_LEN(4 * 8), socket.MSG_CMSG_CLOEXEC)
    return message, list(array.array("i", extra[0][2])) if extra else []
