"""Slot: a process that confines itself once and then spawns commands.

Namespaces, uid, Landlock and the seccomp filter belong to the process that spawns, so each program inherits them and
nothing has to be set up for a command. After locking, a slot can do no more than what it starts. It runs one command at
a time and reports how it exited.
"""

import array
import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import time
from typing import Any, NamedTuple, NoReturn

from toolreeve.sandbox import process_tree, slot_init
from toolreeve.sandbox.kernel import identity, landlock, mounts, overlay, seccomp, syscalls
from toolreeve.sandbox.kernel.loaders import loaders
from toolreeve.sandbox.messages import SLOT_REPORT, failure
from toolreeve.sandbox.plan import Plan
from toolreeve.sandbox.scratch import Scratch

_LARGEST_REQUEST = 1 << 14
_DESCRIPTORS = 64
_CHECK_MEMORY_EVERY = 0.05
_CHECK_CPU_EVERY = 0.25
_ORPHANS = "/proc/1/task/1/children"
_IPC_OBJECTS = tuple(f"/proc/sysvipc/{kind}" for kind in ("shm", "sem", "msg"))
_AWAITED = (signal.SIGCHLD, signal.SIGTERM)
_REHEARSE_AFTER = 0.005
_REHEARSAL = {
    "argv": ["/bin/true"],
    "environment": {},
    "directory": "/",
    "private": False,
    "files": [],
    "memory": 1 << 30,
    "cpu_seconds": 1,
    "processes": 64,
}


Limits = list[tuple[int, int, int]]
"""Resource, soft and hard value."""


class SlotLimits(NamedTuple):
    """Resource limits of a slot and so of each command in it. They cannot be raised again: other limits need another
    slot. `groups` are descriptors of the control groups to enter, `counters` those that count CPU time."""

    limits: Limits
    groups: list[int]
    counters: list[int]


def filters(plan: Plan) -> dict[str, bytes]:
    """The seccomp filter for each network that a command may ask for."""
    if plan.tier == "limits":
        return {}
    networks = ("host",) if plan.network == "host" else ("none", "guarded")
    has_namespaces = plan.tier == "full"
    return {
        network: seccomp.assemble(network=network, unix=has_namespaces, hidden_memory=not plan.counts_memory)
        for network in networks
    }


def _ruleset(plan: Plan, own: str) -> landlock.Ruleset | None:
    """With namespaces it is a second wall and may be missing; without them it is the only one."""
    if plan.tier == "limits":
        return None
    if plan.tier == "full" and not landlock.version():
        return None
    rules = landlock.Ruleset()
    devices = [f"/dev/{name}" for name in mounts.DEVICES]
    not_granted = 0 if plan.programs is None else landlock.RUN
    if plan.tier == "full":
        rules.grant(landlock.READ & ~not_granted, ["/"])
        rules.grant(landlock.WRITE & ~not_granted, [*plan.writable, *mounts.TEMPORARY])
        rules.grant(landlock.USE_TERMINAL, ["/dev/pts"])
    else:
        rules.grant(landlock.READ & ~not_granted, [*plan.readable, *plan.viewed])
        rules.grant(landlock.LOOK, ["/proc"])
        rules.grant(landlock.WRITE & ~not_granted, [*plan.writable, own])
    rules.grant(landlock.USE_DEVICE, devices)
    if plan.programs is not None:
        rules.grant(landlock.RUN, [*plan.programs, *loaders(plan.programs)])
    return rules


def run(
    commands: socket.socket, status: socket.socket, plan: Plan, code: bytes | None, slot_limits: SlotLimits
) -> NoReturn:
    """The whole life of a slot, in a process that was just forked."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for group in slot_limits.groups:
            os.write(group, b"0")
            os.close(group)
        init, scratch = _lock(plan, code, slot_limits.limits, status)
    except Exception as problem:
        status.send(failure(problem))
        os._exit(1)
    status.close()
    try:
        slot = Slot(commands, init, plan, scratch, slot_limits.counters)
        if plan.layer_mb:
            slot.rehearse()
        slot.serve()
    finally:
        os._exit(0)


def _lock(
    plan: Plan, code: bytes | None, limits: Limits, status: socket.socket
) -> tuple[socket.socket | None, Scratch]:
    """Give up all rights, then report the pidfd that kills everything in the slot, and the layers of a trial."""
    with contextlib.suppress(OSError):
        identity.write("/proc/self/oom_score_adj", "500")
    layers: list[int] = []
    if plan.layer_mb:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        mounts.follow_sandbox()
        layers = overlay.cover(plan)
    enter = _enter_namespaces if plan.tier == "full" else _enter_scratch
    init, pidfd, scratch = enter(plan)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, soft, hard in limits:
        _set_limit(kind, soft, hard)
    if plan.tier != "limits":
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        with contextlib.suppress(PermissionError):  # without the right to drop any there is none to drop
            syscalls.drop_capabilities()
    if (rules := _ruleset(plan, _own_folder(plan))) is not None:
        rules.enforce()
    if code is not None:
        seccomp.enforce(code)
    socket.send_fds(status, [b"ready"], [pidfd, *layers])
    for descriptor in (pidfd, *layers):
        os.close(descriptor)
    return init, scratch


def _set_limit(kind: int, soft: int, hard: int) -> None:
    """A lower limit that was set from outside stays."""
    outer = resource.getrlimit(kind)[1]
    if outer != resource.RLIM_INFINITY:
        soft = min(soft, outer)
        hard = min(hard, outer)
    resource.setrlimit(kind, (soft, hard))


def _own_folder(plan: Plan) -> str:
    return f"{plan.scratch}/{os.getpid()}"


def _enter_scratch(plan: Plan) -> tuple[socket.socket | None, int, Scratch]:
    """Without namespaces the slot kills what it started by itself, and the supervisor does when the slot cannot."""
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    own = _own_folder(plan)
    home, work, temporary = (f"{own}/{name}" for name in ("home", "work", "temporary"))
    for folder in (own, home, work, temporary):
        os.mkdir(folder, 0o700)
        if plan.uid is not None:
            os.chown(folder, plan.uid, plan.uid)
    if plan.uid is not None:
        identity.become(plan.uid)
    folders: dict[str, set[str]] = {home: set(), work: set(), temporary: set()}
    scratch = Scratch(folders, home=home, work=work, temporary=temporary, mounted=False)
    return None, os.pidfd_open(os.getpid()), scratch


def _enter_namespaces(plan: Plan) -> tuple[socket.socket | None, int, Scratch]:
    """Mount, process and IPC namespaces of the slot's own, with the slot init as process 1."""
    flags = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC
    if plan.counts_processes:  # processes are counted by user namespace
        if plan.uid is not None:
            identity.become(plan.uid)
        identity.enter_user_namespace(flags)
    else:
        syscalls.unshare(flags)
    mounts.follow_sandbox()
    init, init_slot = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid, pidfd = syscalls.clone(syscalls.CLONE_PIDFD)
    if pid == 0:
        init.close()
        slot_init.run(init_slot, None if plan.counts_processes else plan.uid)
    init_slot.close()
    if not init.recv(1):
        raise OSError("the init process of the slot did not start")
    folders = mounts.temporary_folders(plan)  # not before: all memory used until the fork is copied into the slot init
    if plan.uid is not None and not plan.counts_processes:
        identity.become(plan.uid)
    scratch = Scratch(folders, home=mounts.HOME, work=mounts.PRIVATE, temporary=mounts.TEMPORARY[0], mounted=True)
    return init, pidfd, scratch


class Slot:
    """`init` is the socket of the slot init; without one the slot kills by itself what it started. `counters` count the
    CPU time of the slot's control group."""

    def __init__(
        self,
        commands: socket.socket,
        init: socket.socket | None,
        plan: Plan,
        scratch: Scratch,
        counters: list[int],
    ) -> None:
        self._commands = commands
        self._init = init
        self._has_namespaces = init is not None
        self._scratch = scratch
        self._counters = counters
        self._checks_memory = plan.counts_memory
        self._checks_processes = plan.counts_memory and not plan.counts_processes
        self._cores = os.cpu_count() or 1
        self._orphans = os.open(_ORPHANS, os.O_RDONLY | os.O_CLOEXEC) if os.path.exists(_ORPHANS) else -1
        may_share = self._has_namespaces and not plan.counts_memory  # else the filter refuses to make any
        listings = [path for path in _IPC_OBJECTS if os.path.exists(path)] if may_share else []
        self._ipc_objects = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in listings]
        signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)

    def rehearse(self) -> None:
        """Run a program that does nothing, unless a command waits: a slot of a trial runs one call only, and the first
        command would pay for every page that it is the first to touch."""
        if select.select([self._commands], [], [], _REHEARSE_AFTER)[0]:
            return
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._run_command(_REHEARSAL, [nothing] * 3)

    def serve(self) -> None:
        space = socket.CMSG_SPACE(4 * _DESCRIPTORS)
        buffer = bytearray(_LARGEST_REQUEST)  # one for all: each new one would touch other pages
        while True:
            size, extra, _, _ = self._commands.recvmsg_into([buffer], space, socket.MSG_CMSG_CLOEXEC)
            if not size:
                return
            message = bytes(buffer[:size])
            descriptors = list(array.array("i", extra[0][2]))
            if message == b"@":  # too large for a message
                message = _read_whole(descriptors.pop(0))
            self._commands.send(self._run_command(json.loads(message), descriptors))

    def _run_command(self, request: dict[str, Any], descriptors: list[int]) -> bytes:
        """Returns the report."""
        before = self._counted()
        try:
            pid = _spawn(request, descriptors, self._scratch)
        except OSError as problem:
            if problem.errno == errno.ENOMEM:  # the process namespace was killed from outside
                os._exit(0)
            is_clean = True
            return SLOT_REPORT.pack(b"F", problem.errno or 0, 0, 0, is_clean)
        finally:
            for descriptor in set(descriptors):
                os.close(descriptor)
        kind = self._wait(pid, request, before)
        _, status, used = os.wait4(pid, 0)
        self._kill_leftovers()
        os.chdir("/")
        is_clean = self._scratch.renew() and not self._lists_ipc_objects()
        seconds = self._counted() - before if self._counters else used.ru_utime + used.ru_stime
        return SLOT_REPORT.pack(kind, status, seconds, used.ru_maxrss, is_clean)

    def _lists_ipc_objects(self) -> bool:
        """Whether there is more than the header line in one of these files of /proc."""
        for descriptor in self._ipc_objects:  # noqa: SIM110  # a generator costs memory in every slot
            if os.pread(descriptor, 512, 0).partition(b"\n")[2]:
                return True
        return False

    def _counted(self) -> float:
        """CPU time that the control group has counted, also of processes that nobody waited for."""
        seconds = 0.0
        for counter in self._counters:
            seconds += process_tree.counted_seconds(counter)
        return seconds

    def _cpu_seconds(self, members: list[str], before: float) -> float:
        return self._counted() - before if self._counters else process_tree.cpu_seconds(members)

    def _wait(self, pid: int, request: dict[str, Any], before: float) -> bytes:
        """Until it exits, is to be killed, or exceeds a limit together with its descendants: the kind of the report."""
        cpu_seconds = request["cpu_seconds"]
        earliest = time.monotonic() + cpu_seconds / self._cores
        while True:
            timeout = max(_CHECK_CPU_EVERY, earliest - time.monotonic())
            if self._checks_memory:
                timeout = min(timeout, _CHECK_MEMORY_EVERY)
            received = signal.sigtimedwait(_AWAITED, timeout)
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return b"X"
            if received is not None and received.si_signo == signal.SIGTERM:
                return _kill(pid, b"X")
            checks_cpu = time.monotonic() >= earliest
            if checks_cpu or self._checks_memory:
                members = process_tree.members(has_namespaces=self._has_namespaces)
                if self._checks_memory and process_tree.memory(members) > request["memory"]:
                    return _kill(pid, b"M")
                if self._checks_processes and len(members) > request["processes"]:
                    return _kill(pid, b"P")
                if checks_cpu and self._cpu_seconds(members, before) >= cpu_seconds:
                    return _kill(pid, b"C")

    def _kill_leftovers(self) -> None:
        if self._init is None:
            process_tree.kill_descendants()
            return
        if self._orphans >= 0 and not os.pread(self._orphans, 1, 0):
            return
        self._init.send(b"k")
        if not self._init.recv(1):
            os._exit(0)


def _kill(pid: int, kind: bytes) -> bytes:
    """The command itself; its descendants are killed when it has been waited for."""
    os.kill(pid, signal.SIGKILL)
    return kind


def _read_whole(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _spawn(request: dict[str, Any], descriptors: list[int], scratch: Scratch) -> int:
    """The first three descriptors are its streams, the others files that it finds by name in its environment."""
    environment = {**scratch.environment, **request["environment"]}
    os.chdir(scratch.work if request["private"] else request["directory"])
    actions = [(os.POSIX_SPAWN_DUP2, descriptors[number], number) for number in range(3)]
    above = max(descriptors) + 1
    for number, name in enumerate(request["files"]):
        actions.append((os.POSIX_SPAWN_DUP2, descriptors[3 + number], above + number))
        environment[name] = f"/dev/fd/{above + number}"
    argv = request["argv"]
    return os.posix_spawn(
        process_tree.find_program(argv[0], environment.get("PATH", "")),
        argv,
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=process_tree.IGNORED_BY_PYTHON,
    )
