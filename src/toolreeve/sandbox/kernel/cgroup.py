"""Control groups: one per slot, counting a command and its children.

Version 1 or 2, whichever has the controllers: below our own group, or below the nearest ancestor that was delegated to
us (an ordinary user's systemd slice). The limits of ancestors still hold. Where no group can be made, the reason is
returned, and the caller counts by other means.
"""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

_MOUNTED = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_NEEDED = frozenset({"memory", "pids"})
_TCP_BUFFERS = 16 << 20  # version 1 counts them separately, and only if a limit is set
_V1_WITH_SWAP = "memory.memsw.limit_in_bytes"
_SPARE = 8 << 20  # for the slot itself, which lives in the group


class FileNames(NamedTuple):
    """The names of the control files in one version."""

    memory_limit: str
    swap_control: str
    memory_events: str
    memory_used: str
    cpu_used: str


V1 = FileNames(
    "memory.limit_in_bytes", "memory.swappiness", "memory.oom_control", "memory.usage_in_bytes", "cpuacct.usage"
)
V2 = FileNames("memory.max", "memory.swap.max", "memory.events", "memory.current", "cpu.stat")


class Bases(NamedTuple):
    """The directories in which groups can be made, of the memory, the process and the CPU time controller. The last
    may be missing in version 1; version 2 counts CPU time in every group."""

    memory: Path
    processes: Path
    names: FileNames
    cpu: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        found = dict.fromkeys((self.memory, self.processes, self.cpu))
        return tuple(path for path in found if path is not None)


def find(mounted: Path = _MOUNTED, own: Path = _OWN) -> Bases | str:
    """Where groups can be made, or why they cannot."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError as problem:
        return f"no control groups: {problem.strerror}"
    controllers = {name: path for _, names, path in lines for name in names.split(",")}
    if "memory" in controllers and "pids" in controllers:
        below = {name: mounted / name / controllers[name].lstrip("/") for name in ("memory", "pids")}
        needed = Bases(below["memory"], below["pids"], V1)
        if "cpuacct" in controllers:
            counting = needed._replace(cpu=mounted / "cpuacct" / controllers["cpuacct"].lstrip("/"))
            if isinstance(found := _try(counting), Bases):
                return found
        return _try(needed)
    if "" in controllers:
        return find_delegated(mounted, mounted / controllers[""].lstrip("/"))
    return "neither version of control groups offers memory and process control"


def find_delegated(mounted: Path, own: Path, needed: frozenset[str] = _NEEDED) -> Bases | str:
    """In version 2: our own group, or the nearest ancestor that delegates the controllers and that we may divide."""
    found = _divide(own, needed)
    for group in own.parents:
        if not isinstance(found, str) or not group.is_relative_to(mounted):
            break
        if needed <= _words(group / "cgroup.subtree_control"):
            above = _try(Bases(group, group, V2, group))
            found = above if isinstance(above, Bases) else found
    return found


def _divide(own: Path, needed: frozenset[str]) -> Bases | str:
    if not needed <= _words(own / "cgroup.controllers"):
        return "the memory and pids controllers are not delegated to us (systemd: Delegate=yes)"
    if not needed <= _words(own / "cgroup.subtree_control"):
        try:
            _enter_leaf(own, needed)
        except OSError as problem:
            return f"{own}: {problem.strerror}"
    return _try(Bases(own, own, V2, own))


def _words(path: Path) -> set[str]:
    try:
        return set(path.read_text().split())
    except OSError:
        return set()


def _enter_leaf(own: Path, needed: frozenset[str]) -> None:
    """Move into a new leaf: only a group without processes of its own can delegate controllers."""
    leaf = own / "toolreeve-runtime"
    with contextlib.suppress(FileExistsError):
        leaf.mkdir()
    try:
        (leaf / "cgroup.procs").write_text("0")
        (own / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(needed)))
    except OSError:  # the group holds other processes, too: return to them
        with contextlib.suppress(OSError):
            (own / "cgroup.procs").write_text("0")
            leaf.rmdir()
        raise


def _try(bases: Bases) -> Bases | str:
    name = f"toolreeve-{os.getpid()}-trial"
    try:
        for base in bases.paths:
            _sweep(base)
            (base / name).mkdir()
            (base / name).rmdir()
            if bases.names is V2 and not os.access(base / "cgroup.procs", os.W_OK):
                return f"{base}: processes cannot be moved into it"
    except OSError as problem:
        return f"{problem.filename}: {problem.strerror}"
    return bases


def _sweep(base: Path) -> None:
    """Remove groups of dead runtimes; one that still holds a process cannot be removed anyway."""
    for path in base.glob("toolreeve-*-*"):
        owner = path.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                path.rmdir()


def leaves_swap(bases: Bases, swaps: Path = Path("/proc/swaps")) -> bool:
    """Whether memory of a group can be swapped out and is then counted no more: version 1 without swap accounting."""
    if bases.names is not V1 or (bases.memory / _V1_WITH_SWAP).exists():
        return False
    return len(swaps.read_text().splitlines()) > 1


class ControlGroup:
    """The control group of one slot. Limits are set before a command; afterwards `limits_hit` tells which it hit.
    `limits` are the last that were set, of memory and processes."""

    __slots__ = ("_bases", "_before", "_events", "_memory", "_processes", "_refused", "_used", "limits", "name")

    def __init__(self, bases: Bases, name: str) -> None:
        self.name = name
        self._bases = bases
        for base in bases.paths:
            (base / name).mkdir()
        memory = bases.memory / name
        processes = bases.processes / name
        self._memory = _open(memory / bases.names.memory_limit)
        self._events = _open(memory / bases.names.memory_events)
        self._used = _open(memory / bases.names.memory_used, os.O_RDONLY)
        self._processes = _open(processes / "pids.max")
        self._refused = _open(processes / "pids.events", os.O_RDONLY)
        self.limits = (0, 0)
        self._before = (0, 0)
        with contextlib.suppress(OSError):  # a kernel without swap accounting has none
            _write(memory / bases.names.swap_control, 0)
        if bases.names is V1:
            with contextlib.suppress(OSError):
                _write(memory / "memory.kmem.tcp.limit_in_bytes", _TCP_BUFFERS)

    def entrances(self) -> list[int]:
        """Descriptors that a process writes to to enter the group; the caller closes them."""
        return [_open(base / self.name / "cgroup.procs", os.O_WRONLY) for base in self._bases.paths]

    def cpu_counters(self) -> list[int]:
        """The descriptor that counts CPU time, if there is one; the caller closes it."""
        if self._bases.cpu is None:
            return []
        return [_open(self._bases.cpu / self.name / self._bases.names.cpu_used, os.O_RDONLY)]

    def limit(self, memory: int, processes: int) -> None:
        if self.limits != (memory, processes):
            self._limit_memory(memory + _SPARE)
            os.pwrite(self._processes, b"%d" % (processes + 2), 0)
            self.limits = (memory, processes)
        self._before = self._counts()

    def _limit_memory(self, limit: int) -> None:
        """Version 1 may limit memory and swap together, never below memory alone: first lift that, then lower it."""
        together = self._bases.memory / self.name / _V1_WITH_SWAP
        counts_swap = self._bases.names is V1 and together.exists()
        if counts_swap:
            _write(together, -1)
        os.pwrite(self._memory, b"%d" % limit, 0)
        if counts_swap:
            _write(together, limit)

    def limits_hit(self) -> tuple[bool, bool]:
        """Since the limits were set: whether the kernel killed for memory, and whether it refused a process."""
        memory, processes = self._counts()
        return memory > self._before[0], processes > self._before[1]

    def _counts(self) -> tuple[int, int]:
        return _count(self._events, b"oom_kill "), _count(self._refused, b"max ")

    def used(self) -> int:
        return int(os.pread(self._used, 32, 0))

    def close(self) -> bool:
        """Whether the group could be removed; it cannot while it holds a process."""
        for descriptor in (self._memory, self._events, self._used, self._processes, self._refused):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        return self.remove()

    def remove(self) -> bool:
        gone = True
        for base in self._bases.paths:
            try:
                (base / self.name).rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        return gone


def _open(path: Path, flags: int = os.O_RDWR) -> int:
    return os.open(path, flags | os.O_CLOEXEC)


def _write(path: Path, number: int) -> None:
    descriptor = _open(path, os.O_WRONLY)
    try:
        os.write(descriptor, b"%d" % number)
    finally:
        os.close(descriptor)


def _count(descriptor: int, field: bytes) -> int:
    _, _, rest = os.pread(descriptor, 512, 0).partition(field)
    return int(rest.split(None, 1)[0]) if rest else 0
