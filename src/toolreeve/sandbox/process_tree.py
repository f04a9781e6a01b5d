"""What do a command and all it started use together, and how is it ended where no namespace does it?

Read from /proc, which in a slot of its own namespace shows that command's processes and nothing else.
"""

import contextlib
import errno
import itertools
import os
import signal
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Set

from toolreeve.sandbox.kernel import memory_use

_OWN = (b"RssAnon:", b"VmSwap:", b"VmPTE:", b"HugetlbPages:")
_MAPPING = 512  # what the kernel keeps for each
_TICKS = os.sysconf("SC_CLK_TCK")


def members(*, apart: bool) -> list[str]:
    """The command's processes: all but process 1 where the namespace is the slot's own, else what came of the slot."""
    if apart:
        return [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    return list(_descendants(str(os.getpid())))


def _read(path: str) -> bytes:
    """Nothing where the process ended meanwhile."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def memory(processes: Iterable[str]) -> int:
    """Bytes that are theirs, with what the kernel keeps for them.

    Shared memory counts as mapped, for pages can be let go of without being given back.
    """
    names = list(processes)
    return sum(map(_process_memory, names)) + memory_use.held_by(names)


def _process_memory(name: str) -> int:
    status = _read(f"/proc/{name}/status")
    own = sum(_kilobytes(status, field) for field in _OWN) * 1024
    try:
        with open(f"/proc/{name}/maps", "rb") as file:
            maps = file.read()
    except PermissionError:  # a program whose file cannot be read hides what it maps and opens
        return own + _kilobytes(status, b"VmSize:") * 1024 + memory_use.most_held(_kilobytes(status, b"FDSize:"))
    except OSError:
        return own
    return own + _shared(maps) + maps.count(b"\n") * _MAPPING


def _kilobytes(text: bytes, field: bytes) -> int:
    _, found, rest = text.partition(field)
    return int(rest.split(None, 1)[0]) if found else 0


def _shared(maps: bytes) -> int:
    """Anonymous memory that is shared stands in the maps as a deleted file."""
    if b"/dev/zero (deleted)" not in maps:
        return 0
    lines = [line.split(b" ", 1)[0].split(b"-") for line in maps.splitlines() if line.endswith(b"/dev/zero (deleted)")]
    return sum(int(end, 16) - int(start, 16) for start, end in lines)


def cpu_seconds(processes: Iterable[str]) -> float:
    """CPU time of all that live, with that of the children they waited for."""
    ticks = 0
    for name in processes:
        fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def _children(pid: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            yield from _read(f"/proc/{pid}/task/{task}/children").decode().split()


def _descendants(pid: str) -> Iterator[str]:
    """Without recursion, for whoever is to be ended decides how deep it goes."""
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop()):
            yield child
            waiting.append(child)


def end_descendants(spared: Set[int] = frozenset()) -> None:
    """For a subreaper: end all that came of it, until there is none, and collect what becomes its own by that.

    Children that are `spared` stay, with all that came of them.
    """
    own = str(os.getpid())
    while found := [
        pid for child in _children(own) if int(child) not in spared for pid in (child, *_descendants(child))
    ]:
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def wipe(folder: str, *, keep: Collection[str] = (), most: int | None = None) -> None:
    """Remove everything in a folder but what is to be kept, whatever its rights, its depth and the length of its paths.

    Raises OSError where something does not go, or where there is more than `most`.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    left = itertools.count(most or sys.maxsize, -1)
    try:
        while names := [name for name in os.listdir(top) if name not in keep]:
            for name in names:
                _remove(top, name, left)
    finally:
        os.close(top)


def _remove(top: int, name: str, left: Iterator[int]) -> None:
    """Folders inside a folder are moved to the top, so that depth costs nothing."""
    if next(left) <= 0:
        raise OSError(errno.E2BIG, "there is too much to remove")
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return
    os.chmod(name, stat.S_IRWXU, dir_fd=top)
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        for inner in os.listdir(folder):
            if stat.S_ISDIR(os.stat(inner, dir_fd=folder, follow_symlinks=False).st_mode):
                os.chmod(inner, stat.S_IRWXU, dir_fd=folder)
                os.rename(inner, f".removed-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
            else:
                _remove(folder, inner, left)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
