"""How much may a command and all it started use together? A control group a slot, below our own, where we may.

Version 1 and 2 of control groups, whichever holds the controller. Below our own group the limits of whoever runs us
still hold. What cannot be had is told as a reason; the caller then counts by other means.
"""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

_MOUNTED = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_SPARE = 8 << 20  # for the slot itself, which lives in the group


class Dialect(NamedTuple):
    """How a version spells what we need."""

    memory_limit: str
    swap_limit: str
    memory_events: str
    memory_used: str


V1 = Dialect("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control", "memory.usage_in_bytes")
V2 = Dialect("memory.max", "memory.swap.max", "memory.events", "memory.current")


class Bases(NamedTuple):
    """The directories under which groups can be made: of the memory and of the process controller."""

    memory: Path
    processes: Path
    dialect: Dialect

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.memory, self.processes)))


def find(mounted: Path = _MOUNTED, own: Path = _OWN) -> Bases | str:
    """Where groups can be made, or why they cannot."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError as problem:
        return f"no control groups: {problem.strerror}"
    controllers = {name: path for _, names, path in lines for name in names.split(",")}
    if "memory" in controllers and "pids" in controllers:
        below = {name: mounted / name / controllers[name].lstrip("/") for name in ("memory", "pids")}
        return _tried(Bases(below["memory"], below["pids"], V1))
    if "" in controllers:
        return _second(mounted / controllers[""].lstrip("/"))
    return "neither version of control groups offers memory and process control"


def _second(own: Path) -> Bases | str:
    """Version 2 hands controllers down only from a group that holds no process itself."""
    try:
        offered = (own / "cgroup.controllers").read_text().split()
        if not {"memory", "pids"} <= set(offered):
            return "the memory and pids controllers are not delegated to us (systemd: Delegate=yes)"
        if not {"memory", "pids"} <= set((own / "cgroup.subtree_control").read_text().split()):
            _step_down(own)
    except OSError as problem:
        return f"{own}: {problem.strerror}"
    return _tried(Bases(own, own, V2))


def _step_down(own: Path) -> None:
    """Into a leaf of our own, so that the controllers can be handed down beside it."""
    leaf = own / "toolreeve-runtime"
    with contextlib.suppress(FileExistsError):
        leaf.mkdir()
    (leaf / "cgroup.procs").write_text("0")
    (own / "cgroup.subtree_control").write_text("+memory +pids")


def _tried(bases: Bases) -> Bases | str:
    name = f"toolreeve-{os.getpid()}-trial"
    try:
        for base in bases.paths:
            _sweep(base)
            (base / name).mkdir()
            (base / name).rmdir()
    except OSError as problem:
        return f"{problem.filename}: {problem.strerror}"
    return bases


def _sweep(base: Path) -> None:
    """Groups of runtimes that are no more; one that still holds a process cannot be removed anyway."""
    for path in base.glob("toolreeve-*-*"):
        owner = path.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                path.rmdir()


class Group:
    """The control group of one slot. Limits are set before a command, and asked afterwards whether they were met."""

    __slots__ = ("_bases", "_events", "_limits", "_memory", "_processes", "_refused", "_set", "_used", "name")

    def __init__(self, bases: Bases, name: str) -> None:
        self.name = name
        self._bases = bases
        for base in bases.paths:
            (base / name).mkdir()
        memory, processes, dialect = bases.memory / name, bases.processes / name, bases.dialect
        self._memory = _open(memory / dialect.memory_limit)
        self._events = _open(memory / dialect.memory_events)
        self._used = _open(memory / dialect.memory_used, os.O_RDONLY)
        self._processes = _open(processes / "pids.max")
        self._refused = _open(processes / "pids.events", os.O_RDONLY)
        self._limits = (0, 0)
        self._set = (0, 0)
        if dialect is V2:
            with contextlib.suppress(OSError):
                (memory / dialect.swap_limit).write_text("0")

    def entrances(self) -> list[int]:
        """Descriptors that a process writes to in order to enter; the caller closes them."""
        return [_open(base / self.name / "cgroup.procs", os.O_WRONLY) for base in self._bases.paths]

    def limit(self, memory: int, processes: int) -> None:
        if self._limits != (memory, processes):
            os.pwrite(self._memory, b"%d" % (memory + _SPARE), 0)
            os.pwrite(self._processes, b"%d" % (processes + 2), 0)
            self._limits = (memory, processes)
        self._set = self._counts()

    def met(self) -> tuple[bool, bool]:
        """Whether the limit of memory ended something, and whether a process was refused, since the limits were set."""
        memory, processes = self._counts()
        return memory > self._set[0], processes > self._set[1]

    def _counts(self) -> tuple[int, int]:
        return _count(self._events, b"oom_kill "), _count(self._refused, b"max ")

    def used(self) -> int:
        return int(os.pread(self._used, 32, 0))

    def close(self) -> bool:
        """Whether the group is gone; it stays as long as a process in it does."""
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


def _count(descriptor: int, field: bytes) -> int:
    _, _, rest = os.pread(descriptor, 512, 0).partition(field)
    return int(rest.split(None, 1)[0]) if rest else 0
