"""Which limits does the kernel keep for each process? Set when a slot is locked, inherited by all that it starts."""

import resource
from functools import lru_cache

from toolreeve.core.process import ProcessLimits

KernelLimits = tuple[tuple[int, int, int], ...]
"""Kind, soft and hard value."""

_MEGABYTE = 1 << 20
_OURS = 2  # the slot and its keeper are counted with what they run
_ROOM_TO_WORK = 32 * _MEGABYTE
_SHARED = (
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 1024),
    (resource.RLIMIT_MEMLOCK, 64 << 10),
)
"""What the kernel counts for a user as a whole: enough for programs, and most is left to the user outside."""


@lru_cache(maxsize=64)
def kernel_limits(limits: ProcessLimits, *, memory: bool, processes: bool) -> KernelLimits:
    """`memory` and `processes` say what no control group counts for the whole tree, so that a process at least is held.

    The hard limit of CPU time lies above the soft one: at that a program is told by a signal that has a name.
    """
    size = limits.file_size_mb * _MEGABYTE
    processes_most = limits.processes + _OURS
    held = [
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_FSIZE, size, size),
        (resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1),
        *((kind, most, most) for kind, most in _SHARED),
    ]
    if memory:
        data = max(limits.memory_mb * _MEGABYTE, _ROOM_TO_WORK)
        held.append((resource.RLIMIT_DATA, data, data))
    if processes:
        held.append((resource.RLIMIT_NPROC, processes_most, processes_most))
    return tuple(held)
