"""Guarantees: which limits hold for commands on this machine, and how.

Pure. The table states what the attacks in the tests found; `toolreeve doctor` shows it.
"""

from typing import NamedTuple

DELEGATE = "run as root, or delegated: systemd-run --user --scope -p Delegate=yes toolreeve …"


class Guarantee(NamedTuple):
    """`how` names the mechanism that enforces it, or what happens without; `remedy` how to get it where it does not
    hold."""

    name: str
    holds: bool
    how: str
    remedy: str = ""


class Support(NamedTuple):
    """What this machine supports. `own_user`: commands run as another user than ours; `inotify`: its limit can be
    set."""

    namespaces: bool
    seccomp: bool
    cgroups: bool
    own_user: bool
    inotify: bool


def guarantees(support: Support) -> list[Guarantee]:
    return [*_memory(support), *_shared(support), *_files(support)]


def _memory(support: Support) -> list[Guarantee]:
    if support.cgroups:
        kernel = "counted by a control group: processes, buffers, page tables, locks, memory without a process"
        return [Guarantee("memory", holds=True, how=kernel)]
    return [
        Guarantee("memory", holds=True, how="checked every 50 ms: a peak in between is noticed late"),
        Guarantee(
            "kernel memory",
            holds=True,
            how="socket and pipe buffers, page tables, mappings and epoll watches count as the most they can hold",
        ),
        Guarantee(
            "memory without a process",
            holds=support.seccomp,
            how=f"{_refused(support)}: memfd, System V memory, semaphores and messages, Landlock rules, vmsplice",
            remedy="" if support.seccomp else DELEGATE,
        ),
        Guarantee("TCP buffers with network: host", holds=False, how="only the limits of the machine", remedy=DELEGATE),
        Guarantee("file locks", holds=False, how="not counted; taking many is slow", remedy=DELEGATE),
    ]


def _shared(support: Support) -> list[Guarantee]:
    """What the kernel counts per user or machine, so that a command could use up the share of others."""
    refused = Guarantee("keys, AIO, mounts, namespaces", holds=support.seccomp, how=_refused(support))
    signals = Guarantee("signals, locked memory, message queues", holds=True, how="1024 pending, 64 KB, none")
    return [_processes(support), _inotify(support), refused, signals]


def _refused(support: Support) -> str:
    return "refused" if support.seccomp else "not refused without seccomp"


def _processes(support: Support) -> Guarantee:
    if support.cgroups:
        return Guarantee("processes", holds=True, how="counted by a control group")
    if support.namespaces:
        return Guarantee("processes", holds=True, how="counted by a user namespace per command")
    return Guarantee("processes", holds=True, how="checked every 50 ms")


def _inotify(support: Support) -> Guarantee:
    if support.namespaces and support.own_user:
        return Guarantee("inotify", holds=True, how="commands run as another user")
    if support.namespaces and support.inotify:
        return Guarantee("inotify", holds=True, how="32 instances and 16,384 watches for all commands of a sandbox")
    return Guarantee("inotify", holds=False, how="shared with the user", remedy="a machine that supports tier full")


def _files(support: Support) -> list[Guarantee]:
    temporary = "64 MB each in /tmp, /dev/shm and a private directory, on top of the memory limit"
    written = "each file has a limit, all files together have none"
    return [
        Guarantee("temporary files", holds=support.namespaces, how=temporary if support.namespaces else written),
        Guarantee("writes to the workspace", holds=False, how=written, remedy="a file system quota"),
    ]
