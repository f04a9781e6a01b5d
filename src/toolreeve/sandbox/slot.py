"""Who starts the programs? A slot: locked down once, for ever, and from then on no more able than what it starts.

Namespaces, uid, Landlock and the filter belong to the process that spawns, so each program inherits them and nothing
has to be set up for a command. A slot runs one command at a time and reports how it ended.
"""

import array
import contextlib
import errno
import json
import os
import resource
import signal
import socket
import time
from typing import Any, NamedTuple, NoReturn

from toolreeve.sandbox import process_tree, slot_init
from toolreeve.sandbox.kernel import identity, landlock, mounts, seccomp, syscalls
from toolreeve.sandbox.kernel.loaders import loaders
from toolreeve.sandbox.messages import ENDED, failure
from toolreeve.sandbox.plan import Plan
from toolreeve.sandbox.scratch import Scratch

_LARGEST_REQUEST = 1 << 14
_DESCRIPTORS = 64
_LOOK_EVERY = 0.05
_CPU_LOOK_EVERY = 0.25
_CHILDREN = "/proc/1/task/1/children"
_SHARED = tuple(f"/proc/sysvipc/{kind}" for kind in ("shm", "sem", "msg"))
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_AWAITED = (signal.SIGCHLD, signal.SIGTERM)


Limits = list[tuple[int, int, int]]
"""Kind, soft and hard value."""


class SlotLimits(NamedTuple):
    """What holds a slot and so each command in it. They cannot be widened again: other limits need another slot."""

    limits: Limits
    groups: list[int]


def filters(plan: Plan) -> dict[str, bytes]:
    """The filter of system calls for each network that a command may ask for."""
    if plan.tier == "limits":
        return {}
    networks = ("host",) if plan.network == "host" else ("none", "guarded")
    apart = plan.tier == "full"
    return {
        network: seccomp.assemble(network=network, unix=apart, hidden_memory=not plan.counts_memory)
        for network in networks
    }


def _ruleset(plan: Plan, own: str) -> landlock.Ruleset | None:
    """Beside namespaces it is a second wall and may be missing; without them it is the only one."""
    if plan.tier == "limits" or (plan.tier == "full" and not landlock.version()):
        return None
    rules = landlock.Ruleset()
    devices = [f"/dev/{name}" for name in mounts.DEVICES]
    not_granted = 0 if plan.programs is None else landlock.RUN
    if plan.tier == "full":
        rules.grant(landlock.READ & ~not_granted, ["/"])
        rules.grant(landlock.WRITE & ~not_granted, [*plan.writable, *mounts.TEMPORARY])
        rules.grant(landlock.USE_TERMINAL, ["/dev/pts"])
    else:
        rules.grant(landlock.READ & ~not_granted, plan.readable)
        rules.grant(landlock.LOOK, ["/proc"])
        rules.grant(landlock.WRITE & ~not_granted, [*plan.writable, own])
    rules.grant(landlock.USE_DEVICE, devices)
    if plan.programs is not None:
        rules.grant(landlock.RUN, [*plan.programs, *loaders(plan.programs)])
    return rules


def run(
    commands: socket.socket, telling: socket.socket, plan: Plan, code: bytes | None, bounds: SlotLimits
) -> NoReturn:
    """The whole life of a slot, in a process just forked."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for group in bounds.groups:
            os.write(group, b"0")
            os.close(group)
        ending, scratch = _lock(plan, code, bounds.limits, telling)
    except Exception as problem:
        telling.send(failure(problem))
        os._exit(1)
    telling.close()
    try:
        Slot(commands, ending, plan, scratch).serve()
    finally:
        os._exit(0)


def _lock(
    plan: Plan, code: bytes | None, limits: Limits, telling: socket.socket
) -> tuple[socket.socket | None, Scratch]:
    """Give everything up. What is answered first is how to end it all."""
    with contextlib.suppress(OSError):
        identity.write("/proc/self/oom_score_adj", "500")
    enter = _go_apart if plan.tier == "full" else _stay
    ending, pidfd, scratch = enter(plan)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, soft, hard in limits:
        _hold(kind, soft, hard)
    if plan.tier != "limits":
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        with contextlib.suppress(PermissionError):  # nothing to drop them with means nothing to drop
            syscalls.drop_capabilities()
    if (rules := _ruleset(plan, _own_folder(plan))) is not None:
        rules.enforce()
    if code is not None:
        seccomp.enforce(code)
    socket.send_fds(telling, [b"ready"], [pidfd])
    os.close(pidfd)
    return ending, scratch


def _hold(kind: int, soft: int, hard: int) -> None:
    """What is held tighter from outside stays so."""
    outer = resource.getrlimit(kind)[1]
    if outer != resource.RLIM_INFINITY:
        soft, hard = min(soft, outer), min(hard, outer)
    resource.setrlimit(kind, (soft, hard))


def _own_folder(plan: Plan) -> str:
    return f"{plan.scratch}/{os.getpid()}"


def _stay(plan: Plan) -> tuple[socket.socket | None, int, Scratch]:
    """Without namespaces a slot ends what it started by itself, and the yard does when the slot cannot."""
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


def _go_apart(plan: Plan) -> tuple[socket.socket | None, int, Scratch]:
    """Into mount, process and IPC namespaces of the slot's own; its process 1 is the keeper."""
    apart = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC
    if plan.counts_processes:  # processes are counted by user namespace
        if plan.uid is not None:
            identity.become(plan.uid)
        identity.enter_user_namespace(apart)
    else:
        syscalls.unshare(apart)
    mounts.follow_place()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid, pidfd = syscalls.clone(syscalls.CLONE_PIDFD)
    if pid == 0:
        ours.close()
        slot_init.run(theirs, None if plan.counts_processes else plan.uid)
    theirs.close()
    if not ours.recv(1):
        raise OSError("the keeper of the slot did not start")
    folders = mounts.temporary_folders(plan)  # by now, for what is done before is copied into the keeper's memory
    if plan.uid is not None and not plan.counts_processes:
        identity.become(plan.uid)
    scratch = Scratch(folders, home=mounts.HOME, work=mounts.PRIVATE, temporary=mounts.TEMPORARY[0], mounted=True)
    return ours, pidfd, scratch


class Slot:
    """`ending` is the line to the keeper; without one the slot ends by itself what it started."""

    def __init__(self, commands: socket.socket, ending: socket.socket | None, plan: Plan, scratch: Scratch) -> None:
        self._commands = commands
        self._ending = ending
        self._apart = ending is not None
        self._scratch = scratch
        self._watches_memory = plan.counts_memory
        self._watches_number = plan.counts_memory and not plan.counts_processes
        self._cores = os.cpu_count() or 1
        self._orphans = os.open(_CHILDREN, os.O_RDONLY | os.O_CLOEXEC) if os.path.exists(_CHILDREN) else -1
        may_share = self._apart and not plan.counts_memory  # else the filter refuses to make any
        shared = [path for path in _SHARED if may_share and os.path.exists(path)]
        self._shared = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in shared]
        signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)

    def serve(self) -> None:
        space = socket.CMSG_SPACE(4 * _DESCRIPTORS)
        while True:
            message, extra, _, _ = self._commands.recvmsg(_LARGEST_REQUEST, space, socket.MSG_CMSG_CLOEXEC)
            if not message:
                return
            descriptors = list(array.array("i", extra[0][2]))
            if message == b"@":  # too large for a message
                message = _read_whole(descriptors.pop(0))
            self._command(json.loads(message), descriptors)

    def _command(self, request: dict[str, Any], descriptors: list[int]) -> None:
        try:
            pid = _spawn(request, descriptors, self._scratch)
        except OSError as problem:
            if problem.errno == errno.ENOMEM:  # the process namespace is dead: killed from outside
                os._exit(0)
            clean = True
            self._commands.send(ENDED.pack(b"F", problem.errno or 0, 0, 0, 0, clean))
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        breach = self._await(pid, request)
        _, status, used = os.wait4(pid, 0)
        self._end_leftovers()
        os.chdir("/")
        clean = self._scratch.renew() and not any(map(_lists_any, self._shared))
        self._commands.send(ENDED.pack(breach, status, used.ru_utime, used.ru_stime, used.ru_maxrss, clean))

    def _await(self, pid: int, request: dict[str, Any]) -> bytes:
        """Until it ends, is to be ended, or uses more than it may together with all it started."""
        cpu_seconds = request["cpu_seconds"]
        began = time.monotonic()
        soonest = began + cpu_seconds / self._cores
        while True:
            patience = max(_CPU_LOOK_EVERY, soonest - time.monotonic())
            heard = signal.sigtimedwait(_AWAITED, min(patience, _LOOK_EVERY) if self._watches_memory else patience)
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return b"X"
            if heard is not None and heard.si_signo == signal.SIGTERM:
                return _kill(pid, b"X")
            late = time.monotonic() >= soonest
            if late or self._watches_memory:
                used = process_tree.members(apart=self._apart)
                if self._watches_memory and process_tree.memory(used) > request["memory"]:
                    return _kill(pid, b"M")
                if self._watches_number and len(used) > request["processes"]:
                    return _kill(pid, b"P")
                if late and process_tree.cpu_seconds(used) >= cpu_seconds:
                    return _kill(pid, b"C")

    def _end_leftovers(self) -> None:
        if not self._apart or self._orphans < 0 or os.pread(self._orphans, 1, 0):
            self._end_all()

    def _end_all(self) -> None:
        if self._ending is None:
            process_tree.end_descendants()
            return
        self._ending.send(b"k")
        if not self._ending.recv(1):
            os._exit(0)


def _kill(pid: int, why: bytes) -> bytes:
    """The command itself; what it leaves behind is ended when it has been waited for."""
    os.kill(pid, signal.SIGKILL)
    return why


def _lists_any(descriptor: int) -> bool:
    """Whether there is more than the line of titles in such a file of /proc."""
    return bool(os.pread(descriptor, 512, 0).partition(b"\n")[2])


def _read_whole(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _spawn(request: dict[str, Any], descriptors: list[int], scratch: Scratch) -> int:
    """The first three descriptors are its streams, the others are files that it finds by name."""
    environment = {**scratch.environment, **request["environment"]}
    os.chdir(scratch.work if request["private"] else request["directory"])
    actions = [(os.POSIX_SPAWN_DUP2, descriptors[number], number) for number in range(3)]
    above = max(descriptors) + 1
    for number, name in enumerate(request["files"]):
        actions.append((os.POSIX_SPAWN_DUP2, descriptors[3 + number], above + number))
        environment[name] = f"/dev/fd/{above + number}"
    argv = request["argv"]
    return os.posix_spawn(
        _found(argv[0], environment.get("PATH", "")),
        argv,
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=_IGNORED_BY_PYTHON,
    )


def _found(program: str, path: str) -> str:
    if "/" in program:
        return program
    for folder in path.split(":"):
        candidate = f"{folder}/{program}"
        if folder and os.access(candidate, os.X_OK):
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
