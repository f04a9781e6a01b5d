"""Limits table: which limits hold for commands here, by what, and which do not.

Pure. What stands here is what the attacks in the tests found; `toolreeve doctor` shows it.
"""

from typing import NamedTuple

DELEGATE = "run as root, or delegated: systemd-run --user --scope -p Delegate=yes toolreeve …"


class Guarantee(NamedTuple):
    """`how` says by what it holds, or what happens; `remedy` how to get it where it does not hold."""

    name: str
    holds: bool
    how: str
    remedy: str = ""


class Means(NamedTuple):
    """`apart`: with namespaces; `filtered`: system calls are; `counted`: by a control group; `own_user`: commands run
    as a user that is not ours; `inotify`: its limit can be set."""

    apart: bool
    filtered: bool
    counted: bool
    own_user: bool
    inotify: bool


def guarantees(means: Means) -> list[Guarantee]:
    return [*_memory(means), *_shared(means), *_files(means)]


def _memory(means: Means) -> list[Guarantee]:
    if means.counted:
        kernel = "counted by a control group: processes, buffers, page tables, locks, memory of no process"
        return [Guarantee("memory", holds=True, how=kernel)]
    return [
        Guarantee("memory", holds=True, how="looked at every 50 ms: what a command takes in between is seen late"),
        Guarantee(
            "kernel memory",
            holds=True,
            how="socket and pipe buffers, page tables, mappings and epoll watches count as the most they can hold",
        ),
        Guarantee(
            "memory of no process",
            holds=means.filtered,
            how=f"{_refused(means)}: memfd, System V memory, semaphores and messages, Landlock rules, vmsplice",
            remedy="" if means.filtered else DELEGATE,
        ),
        Guarantee("TCP buffers with network: host", holds=False, how="only the machine's own limits", remedy=DELEGATE),
        Guarantee("file locks", holds=False, how="not counted; taking many is slow", remedy=DELEGATE),
    ]


def _shared(means: Means) -> list[Guarantee]:
    """What is counted for a user or the whole machine, so that a command could leave others none."""
    refused = Guarantee("keys, AIO, mounts, namespaces", holds=means.filtered, how=_refused(means))
    signals = Guarantee("signals, locked memory, message queues", holds=True, how="1024 pending, 64 KB, none")
    return [_processes(means), _inotify(means), refused, signals]


def _refused(means: Means) -> str:
    return "refused" if means.filtered else "not refused without seccomp"


def _processes(means: Means) -> Guarantee:
    if means.counted:
        return Guarantee("processes", holds=True, how="counted by a control group")
    if means.apart:
        return Guarantee("processes", holds=True, how="counted by a user namespace for each command")
    return Guarantee("processes", holds=True, how="looked at every 50 ms")


def _inotify(means: Means) -> Guarantee:
    if means.apart and means.own_user:
        return Guarantee("inotify", holds=True, how="commands run as a user of their own")
    if means.apart and means.inotify:
        return Guarantee("inotify", holds=True, how="32 instances and 16,384 watches for all commands of a place")
    return Guarantee("inotify", holds=False, how="shared with the user", remedy="a machine that gives tier full")


def _files(means: Means) -> list[Guarantee]:
    temporary = "64 MB each in /tmp, /dev/shm and a private directory, beside the limit of memory"
    written = "each file has a limit, all together have none"
    return [
        Guarantee("temporary files", holds=means.apart, how=temporary if means.apart else written),
        Guarantee("writes to the workspace", holds=False, how=written, remedy="a quota of the file system"),
    ]
