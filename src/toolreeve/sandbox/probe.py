"""Probe of the kernel mechanisms: each is tried, never guessed.

`examine` starts a small Python process, which runs each trial in a fork of its own.
"""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from toolreeve.sandbox import guarantees
from toolreeve.sandbox.bootstrap import small_python
from toolreeve.sandbox.kernel import cgroup, identity, landlock, mounts, overlay, seccomp, syscalls

TIMEOUT = 20


class Mechanism(NamedTuple):
    """`problem` is empty where it works; `use` says what it is for, `remedy` how to get it."""

    name: str
    problem: str
    use: str
    remedy: str


def _enter_namespaces(flags: int) -> None:
    """As the supervisor does: root without, others with a user namespace."""
    if os.geteuid() == 0:
        syscalls.unshare(flags)
    else:
        identity.enter_user_namespace(flags)


def _mounts() -> None:
    _enter_namespaces(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    tree = syscalls.detached_tree("/usr")
    syscalls.set_mount(tree, syscalls.ATTR_RDONLY | syscalls.ATTR_NOSUID)
    mounts.mount_temporary("/tmp", 1)  # noqa: S108  # in the trial's own mount namespace
    syscalls.attach_tree(tree, "/tmp")  # noqa: S108


def _processes() -> None:
    _enter_namespaces(syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    if problem := _try(lambda: mounts.mount_processes("/proc")):
        raise OSError(problem)


def _mapped() -> None:
    if os.geteuid() != 0:
        raise OSError("only root can use it; other users do not need it")
    mapping = identity.mapping_namespace((0, 0), 2_000_000_000)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.set_mount(syscalls.detached_tree("/var"), 0, mapping)


def _landlock() -> None:
    rules = landlock.Ruleset()
    rules.grant(landlock.READ, ["/usr"])
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    rules.enforce()
    try:
        os.listdir("/etc")
    except PermissionError:
        return
    raise OSError("accepted by the kernel, but not enforced")


def _filter() -> None:
    if not syscalls.KNOWN_MACHINE:
        raise OSError("the system calls of this CPU architecture are not known")
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.enforce(seccomp.assemble(network="none"))
    try:
        socket.socket(socket.AF_INET).close()
    except OSError:
        return
    raise OSError("accepted by the kernel, but not enforced")


def _inotify() -> None:
    identity.enter_user_namespace()
    with open("/proc/sys/user/max_inotify_instances") as file:
        if int(file.read()) != identity.INOTIFY["instances"]:
            raise OSError("/proc/sys/user cannot be written")


def _overlays() -> None:
    """A deleted file must leave a mark in the layer and stay where it is."""
    _enter_namespaces(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    mounts.mount_temporary("/tmp", 1)  # noqa: S108  # in the trial's own mount namespace
    root = "/tmp/root"  # noqa: S108
    os.mkdir(root)
    os.close(os.open(f"{root}/file", os.O_CREAT | os.O_WRONLY))
    upper = overlay.mount_overlay(root, "/tmp/layer", is_user=os.geteuid() != 0)  # noqa: S108
    os.unlink(f"{root}/file")
    if not stat.S_ISCHR(os.stat("file", dir_fd=upper).st_mode):
        raise OSError("the layer does not show what was deleted")


def _groups() -> None:
    """Tried by the runtime itself: only a process that is alone in a group can divide it."""


TRIALS: tuple[tuple[str, Callable[[], object], str, str], ...] = (
    (
        "user namespaces",
        identity.enter_user_namespace,
        "isolation for an ordinary user",
        "sysctl user.max_user_namespaces=1000 (Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0)",
    ),
    (
        "mount namespace",
        _mounts,
        "paths that are not allowed do not exist",
        "Linux 5.12 or later, and the right to unshare",
    ),
    (
        "process namespace",
        _processes,
        "all processes of a command end with it",
        "an unmasked /proc (containers mask it)",
    ),
    (
        "network namespace",
        lambda: _enter_namespaces(syscalls.CLONE_NEWNET),
        "no network, or only the proxy",
        "the right to unshare",
    ),
    (
        "ipc namespace",
        lambda: _enter_namespaces(syscalls.CLONE_NEWIPC),
        "no shared memory with others",
        "the right to unshare",
    ),
    (
        "overlays",
        _overlays,
        "commands run on trial instead of asking beforehand",
        "Linux 6.6 or later with overlayfs (5.11 for root)",
    ),
    ("mapped mounts", _mapped, "commands of root are not root", "a file system that maps ids: ext4, xfs, btrfs, tmpfs"),
    ("Landlock", _landlock, "a second wall around files", "Linux 5.13 or later, with lsm=landlock at boot"),
    ("seccomp", _filter, "dangerous system calls are refused", "Linux with seccomp filters on x86-64 or ARM64"),
    ("control groups", _groups, "memory and processes counted per command", guarantees.DELEGATE),
    (
        "inotify limit",
        _inotify,
        "a command cannot use up the user's instances",
        "a /proc/sys that is not mounted read-only",
    ),
    ("pidfd", lambda: os.close(os.pidfd_open(os.getpid())), "a command is killed at once", "Linux 5.3 or later"),
)


def _try(act: Callable[[], object]) -> str:
    """The problem, or nothing if it works. In a fork, because most trials cannot be undone."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os.write(writing, b"+")
        except BaseException as problem:
            os.write(writing, str(problem).encode()[:300] or b"failed")
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 400).decode(errors="replace")
    os.close(reading)
    os.waitpid(pid, 0)
    if answer == "+":
        return ""
    return answer or "the trial was killed"


def main() -> None:
    found = {name: _try(act) for name, act, _, _ in TRIALS if act is not _groups}
    print(json.dumps(found | {"landlock version": landlock.version()}))


def examine() -> tuple[list[Mechanism], int]:
    """All mechanisms, and the version of Landlock. Where no trial can run, each mechanism has that problem."""
    try:
        output = subprocess.run(small_python("probe"), capture_output=True, timeout=TIMEOUT, check=True, env={}).stdout
        groups = cgroup.find()
        found = {"control groups": groups if isinstance(groups, str) else "", **json.loads(output)}
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        found = {name: f"could not be tried on {sys.platform}: {type(problem).__name__}" for name, *_ in TRIALS}
    mechanisms = [Mechanism(name, found[name], use, remedy) for name, _, use, remedy in TRIALS]
    return mechanisms, int(found.get("landlock version", 0))
