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
    """What this machine supports. `own_user`: commands run as another user than ours; `inotify`: its limit can be set;
    `cpu_counter`: control groups count CPU time; `swap`: memory can leave a group's count by being swapped out;
    `signal_scope`: Landlock keeps signals inside (version 6)."""

    namespaces: bool
    seccomp: bool
    cgroups: bool
    own_user: bool
    inotify: bool
    cpu_counter: bool
    swap: bool
    signal_scope: bool


def guarantees(support: Support) -> list[Guarantee]:
    return [*_memory(support), _cpu_time(support), *_shared(support), _signals(support), *_files(support)]


def _cpu_time(support: Support) -> Guarantee:
    if support.cpu_counter:
        return Guarantee("CPU time", holds=True, how="counted by a control group")
    sampled = (
        "checked every 250 ms, without children that ended while their parent ignored SIGCHLD; "
        "each process has its own limit"
    )
    return Guarantee("CPU time", holds=False, how=sampled, remedy=DELEGATE)


def _signals(support: Support) -> Guarantee:
    name = "signals to processes outside"
    if support.namespaces:
        return Guarantee(name, holds=True, how="none is visible")
    if support.signal_scope:
        return Guarantee(name, holds=True, how="refused by Landlock")
    how = "commands can signal other processes of their user, as an ordinary user the runtime, too"
    return Guarantee(name, holds=False, how=how, remedy="a machine that supports tier full, or Linux 6.12")


def _memory(support: Support) -> list[Guarantee]:
    if support.cgroups:
        kernel = "counted by a control group: processes, buffers, page tables, locks, memory without a process"
        lost = "version 1 does not count what the machine swaps out under pressure"
        return [
            Guarantee("memory", holds=True, how=kernel),
            Guarantee(
                "swap",
                holds=not support.swap,
                how=lost if support.swap else "commands have none",
                remedy="boot with swapaccount=1, or use version 2" if support.swap else "",
            ),
        ]
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
