"""What do a command and all it started use together, and how is it ended where no namespace does it?

Read from /proc, which in a slot of its own namespace shows that command's processes and nothing else.
"""

import contextlib
import os
import signal
import stat
from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[str]:
    own = str(os.getpid())
    return (name for name in os.listdir("/proc") if name.isdigit() and name not in ("1", own))


def _read(path: str) -> bytes:
    """Nothing where the process ended meanwhile."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def memory() -> int:
    """Bytes of memory that are theirs alone; pages shared after a fork are counted once."""
    quick = sum(_kilobytes(_read(f"/proc/{name}/status"), b"RssAnon:", b"RssShmem:") for name in _processes())
    return quick * 1024


def _kilobytes(text: bytes, *fields: bytes) -> int:
    total = 0
    for field in fields:
        _, found, rest = text.partition(field)
        total += int(rest.split(None, 1)[0]) if found else 0
    return total


def cpu_seconds() -> float:
    """CPU time of all that live, with that of the children they waited for."""
    ticks = 0
    for name in _processes():
        text = _read(f"/proc/{name}/stat")
        fields = text.rpartition(b")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def _children(pid: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            yield from _read(f"/proc/{pid}/task/{task}/children").decode().split()


def _descendants(pid: str) -> Iterator[str]:
    for child in _children(pid):
        yield child
        yield from _descendants(child)


def end_descendants() -> None:
    """For a subreaper: end all that came of us, until there is none, and collect what becomes ours by that."""
    own = str(os.getpid())
    while found := list(_descendants(own)):
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def wipe(folder: str) -> None:
    """Remove everything in a folder, whatever its permissions."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.path, stat.S_IRWXU)
            wipe(entry.path)
            os.rmdir(entry.path)
        else:
            os.unlink(entry.path)
