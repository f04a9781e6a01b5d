"""What does this kernel give? Each mechanism is tried in a process of its own, never guessed from a version.

`examine` is asked by the runtime and starts a small Python; the trials run in there, each in a fork that then ends.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from toolreeve.sandbox import guarantees
from toolreeve.sandbox.kernel import cgroup, identity, landlock, mounts, seccomp, syscalls

PATIENCE = 20
_BOOT = """
import sys, types
package = types.ModuleType("toolreeve")
package.__path__ = [sys.argv[1]]
sys.modules["toolreeve"] = package
from toolreeve.sandbox.probe import main
main()
"""


class Mechanism(NamedTuple):
    """`problem` is empty where it works; `use` says what it is for, `remedy` how to get it."""

    name: str
    problem: str
    use: str
    remedy: str


def _apart(flags: int) -> None:
    """As the yard goes apart: root without, others with a user namespace."""
    if os.geteuid() == 0:
        syscalls.unshare(flags)
    else:
        identity.enter_user_namespace(flags)


def _mounts() -> None:
    _apart(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    tree = syscalls.detached_tree("/usr")
    syscalls.set_mount(tree, syscalls.ATTR_RDONLY | syscalls.ATTR_NOSUID)
    mounts.mount_temporary("/tmp", 1)  # noqa: S108  # in a namespace of the trial's own
    syscalls.attach_tree(tree, "/tmp")  # noqa: S108


def _processes() -> None:
    _apart(syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    if problem := _tried(lambda: mounts.mount_processes("/proc")):
        raise OSError(problem)


def _mapped() -> None:
    if os.geteuid() != 0:
        raise OSError("only for root; an ordinary user needs none")
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
    raise OSError("it was accepted but does not hold")


def _filter() -> None:
    if not syscalls.KNOWN_MACHINE:
        raise OSError("the system calls of this kind of machine are not known")
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.enforce(seccomp.assemble(network="none"))
    try:
        socket.socket(socket.AF_INET).close()
    except OSError:
        return
    raise OSError("it was accepted but does not hold")


def _inotify() -> None:
    identity.enter_user_namespace()
    with open("/proc/sys/user/max_inotify_instances") as file:
        if int(file.read()) != identity.INOTIFY["instances"]:
            raise OSError("/proc/sys/user cannot be written")


def _groups() -> None:
    """Tried by the runtime itself: a group is divided only by a process that is alone in it."""


TRIALS: tuple[tuple[str, Callable[[], object], str, str], ...] = (
    (
        "user namespaces",
        identity.enter_user_namespace,
        "isolation for an ordinary user",
        "sysctl user.max_user_namespaces=1000 (Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0)",
    ),
    ("mount namespace", _mounts, "what is not allowed does not exist", "Linux 5.12 or later, and the right to unshare"),
    ("process namespace", _processes, "everything ends with its command", "an unmasked /proc (containers mask it)"),
    (
        "network namespace",
        lambda: _apart(syscalls.CLONE_NEWNET),
        "no network, or only the proxy",
        "the right to unshare",
    ),
    ("ipc namespace", lambda: _apart(syscalls.CLONE_NEWIPC), "no shared memory with others", "the right to unshare"),
    ("mapped mounts", _mapped, "commands of root are not root", "a file system that maps ids: ext4, xfs, btrfs, tmpfs"),
    ("Landlock", _landlock, "a second wall around files", "Linux 5.13 or later, with lsm=landlock at boot"),
    ("seccomp", _filter, "dangerous system calls are refused", "Linux with seccomp filters on x86-64 or ARM64"),
    ("control groups", _groups, "memory and processes counted together", guarantees.DELEGATE),
    ("inotify limit", _inotify, "a command leaves its user some", "a /proc/sys that is not mounted read-only"),
    ("pidfd", lambda: os.close(os.pidfd_open(os.getpid())), "a command is ended at once", "Linux 5.3 or later"),
)


def _tried(act: Callable[[], object]) -> str:
    """What is wrong with it; nothing if it works. In a fork, for most trials cannot be taken back."""
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os.write(telling, b"+")
        except BaseException as problem:
            os.write(telling, str(problem).encode()[:300] or b"failed")
        os._exit(0)
    os.close(telling)
    answer = os.read(told, 400).decode(errors="replace")
    os.close(told)
    os.waitpid(pid, 0)
    return "" if answer == "+" else answer or "the trial died"


def main() -> None:
    found = {name: _tried(act) for name, act, _, _ in TRIALS if act is not _groups}
    print(json.dumps(found | {"landlock version": landlock.version()}))


def examine() -> tuple[list[Mechanism], int]:
    """All mechanisms, and the version of Landlock. Where no trial can be made, that is every one's problem."""
    try:
        said = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _BOOT, str(Path(__file__).parent.parent)],
            capture_output=True,
            timeout=PATIENCE,
            check=True,
            env={},
        ).stdout
        groups = cgroup.find()
        found = {"control groups": groups if isinstance(groups, str) else "", **json.loads(said)}
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        found = {name: f"could not be tried on {sys.platform}: {type(problem).__name__}" for name, *_ in TRIALS}
    mechanisms = [Mechanism(name, found[name], use, remedy) for name, _, use, remedy in TRIALS]
    return mechanisms, int(found.get("landlock version", 0))
