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
import sys

from toolreeve.sandbox import identity, mounts, slot, syscalls, tree
from toolreeve.sandbox.plan import Plan

PROXY_PORT = 3128
MESSAGE = 1 << 18
_SIOCSIFFLAGS = 0x8914
_UP_AND_RUNNING = 0x41
_APART = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWPID


def main(descriptor: int) -> None:
    """Started by the runtime with its end of a socket; the first message is the plan."""
    runtime = socket.socket(fileno=descriptor)
    runtime.set_inheritable(False)
    try:
        os.umask(0o022)
        plan = Plan.from_json(runtime.recv(MESSAGE))
        life = os.pidfd_open(os.getppid())
        if plan.tier == "full":
            mapping = _go_apart(plan, runtime)
            _serve(runtime, life, plan, _open_place(plan, mapping))
        else:
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
            runtime.send(struct.pack("=I", os.getpid()))
            _serve(runtime, life, plan, None)
    except Exception as problem:
        with contextlib.suppress(OSError):
            runtime.send(json.dumps({"problem": f"{type(problem).__name__}: {problem}"}).encode())
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
    pid, _ = syscalls.clone(syscalls.CLONE_PARENT)
    if pid:
        runtime.send(struct.pack("=I", pid))
        os._exit(0)
    return mapping


def _open_place(plan: Plan, mapping: int) -> socket.socket | None:
    """Build the place; the listener of the guarded network is made while we are still able to."""
    listener = None
    if plan.network != "host":
        _raise_loopback()
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", PROXY_PORT))
        listener.listen(128)
    syscalls.set_host_name(b"sandbox")
    mounts.build(plan, mapping)
    if mapping >= 0:
        os.close(mapping)
    return listener


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


def _serve(runtime: socket.socket, life: int, plan: Plan, listener: socket.socket | None) -> None:
    handed = [] if listener is None else [listener.fileno()]
    socket.send_fds(runtime, [b"{}"], handed)
    if listener is not None:
        listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # slots that end leave nothing to be collected
    filters = slot.filters(plan)
    gc.collect()
    gc.freeze()
    gc.disable()
    awaited = select.poll()
    awaited.register(runtime, select.POLLIN)
    awaited.register(life, select.POLLIN)
    groups = _Groups()
    while all(descriptor != life for descriptor, _ in awaited.poll()):
        message, descriptors = _receive(runtime)
        if not message:
            break
        request = json.loads(message)
        if "remove" in request:
            groups.forget(request["remove"])
        elif "groups" in request:
            groups.base = descriptors
        else:
            groups.names.add(request["name"])
            _let_out(runtime, plan, filters.get(request["network"]), descriptors)
    _end_all()
    groups.clear()


class _Groups:
    """The control groups of the slots, to be removed by us when the runtime no longer can."""

    def __init__(self) -> None:
        self.base: list[int] = []
        self.names: set[str] = set()

    def forget(self, name: str) -> None:
        self.names.discard(name)

    def clear(self) -> None:
        for base in self.base:
            for name in self.names:
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=base)


def _end_all() -> None:
    """Only process 1 of a namespace, or a subreaper, is left with orphans to end; wait until none is there."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    else:
        tree.end_descendants()
    with contextlib.suppress(ChildProcessError):  # children are ignored, so this returns when the last is gone
        os.waitpid(-1, 0)


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    message, extra, _, _ = connection.recvmsg(MESSAGE, socket.CMSG_LEN(4 * 8), socket.MSG_CMSG_CLOEXEC)
    return message, list(array.array("i", extra[0][2])) if extra else []


def _let_out(runtime: socket.socket, plan: Plan, code: bytes | None, groups: list[int]) -> None:
    """Fork a slot; the runtime gets its socket and the pidfd that ends all it runs, or the reason why there is none."""
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        for each in (runtime, theirs, told):
            each.close()
        slot.run(ours, telling, plan, code, groups)
    for each in (ours, telling):
        each.close()
    for group in groups:
        os.close(group)
    answer, descriptors = _receive(told)
    told.close()
    if answer == b"ready":
        socket.send_fds(runtime, [b"slot"], [theirs.fileno(), *descriptors])
    else:
        runtime.send(b"none" + (answer or b"the slot ended while it was being locked"))
    theirs.close()
    for descriptor in descriptors:
        os.close(descriptor)


if __name__ == "__main__":
    main(int(sys.argv[1]))
