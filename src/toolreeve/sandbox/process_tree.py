"""Process trees: find, measure and kill a command's descendants.

Read from /proc, which in a slot with its own process namespace shows that command's processes and nothing else.
"""

import contextlib
import errno
import os
import signal
from collections.abc import Iterable, Iterator, Set

from toolreeve.sandbox.kernel import memory_use

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_PRIVATE = (b"RssAnon:", b"VmSwap:", b"VmPTE:", b"HugetlbPages:")
_MAPPING = 512  # kernel memory per mapping
_TICKS = os.sysconf("SC_CLK_TCK")


def find_program(program: str, search_path: str) -> str:
    """The path of a program, as `execvp` would find it. Raises FileNotFoundError."""
    if "/" in program:
        return program
    for folder in search_path.split(":"):
        candidate = f"{folder}/{program}"
        if folder and os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def members(*, has_namespaces: bool) -> list[str]:
    """The command's processes: all but process 1 in a slot's own namespace, else all descendants of the slot."""
    if has_namespaces:
        return [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    return list(_descendants(str(os.getpid())))


def _read(path: str) -> bytes:
    """Empty where the process has exited meanwhile."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def memory(processes: Iterable[str]) -> int:
    """Bytes of these processes, with the kernel memory behind their descriptors.

    Shared memory counts as mapped, because pages can be unmapped without being freed.
    """
    names = list(map(_visible_thread, processes))
    return sum(map(_process_memory, names)) + memory_use.held_by(names)


def _visible_thread(pid: str) -> str:
    """A process whose first thread has exited shows its memory and descriptors only by its other threads."""
    if b"\nVmSize:" in _read(f"/proc/{pid}/status"):
        return pid
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            if b"\nVmSize:" in _read(f"/proc/{pid}/task/{thread}/status"):
                return f"{pid}/task/{thread}"
    return pid


def _process_memory(name: str) -> int:
    status = _read(f"/proc/{name}/status")
    private = sum(_kilobytes(status, field) for field in _PRIVATE) * 1024
    try:
        with open(f"/proc/{name}/maps", "rb") as file:
            maps = file.read()
    except PermissionError:  # a program whose file is unreadable hides its mappings and descriptors
        mapped = _kilobytes(status, b"VmSize:") * 1024
        return private + mapped + memory_use.most_held(_kilobytes(status, b"FDSize:"))
    except OSError:
        return private
    return private + _shared(maps) + maps.count(b"\n") * _MAPPING


def _kilobytes(text: bytes, field: bytes) -> int:
    _, found, rest = text.partition(field)
    return int(rest.split(None, 1)[0]) if found else 0


def _shared(maps: bytes) -> int:
    """Shared anonymous memory is listed in the maps as a deleted file."""
    if b"/dev/zero (deleted)" not in maps:
        return 0
    lines = [line.split(b" ", 1)[0].split(b"-") for line in maps.splitlines() if line.endswith(b"/dev/zero (deleted)")]
    return sum(int(end, 16) - int(start, 16) for start, end in lines)


def cpu_seconds(processes: Iterable[str]) -> float:
    """CPU time of all live processes, with that of the children they waited for.

    The kernel drops that of children whose parent ignores SIGCHLD.
    """
    ticks = 0
    for name in processes:
        fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def counted_seconds(counter: int) -> float:
    """CPU time of all that ever was in a control group, from its `cpuacct.usage` or `cpu.stat`."""
    text = os.pread(counter, 512, 0)
    _, found, microseconds = text.partition(b"usage_usec ")
    return int(microseconds.split(None, 1)[0]) / 1e6 if found else int(text) / 1e9


def _children(pid: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            yield from _read(f"/proc/{pid}/task/{task}/children").decode().split()


def _descendants(pid: str) -> Iterator[str]:
    """Without recursion, because the command decides how deep its tree is."""
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop()):
            yield child
            waiting.append(child)


def kill_descendants(spared: Set[int] = frozenset()) -> None:
    """For a subreaper: kill all descendants until there is none, and reap the orphans that it adopts by that.

    Children that are `spared` stay, with all their descendants.
    """
    while found := _unspared(spared):
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _unspared(spared: Set[int]) -> list[str]:
    found: list[str] = []
    for child in _children(str(os.getpid())):
        if int(child) not in spared:
            found += (child, *_descendants(child))
    return found
