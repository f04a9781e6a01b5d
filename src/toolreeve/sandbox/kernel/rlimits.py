"""Resource limits (rlimits) of a slot, inherited by all that it starts."""

import resource
from functools import lru_cache

from toolreeve.core.process import ProcessLimits

KernelLimits = tuple[tuple[int, int, int], ...]
"""Resource, soft and hard value."""

_MEGABYTE = 1 << 20
_OURS = 2  # the slot and its init are counted with their command
_LEAST_DATA = 32 * _MEGABYTE
LEAST_OPEN_FILES = 64
"""What a slot itself needs. A command that may open less is started behind its own limit."""
_SHARED = (
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 1024),
    (resource.RLIMIT_MEMLOCK, 64 << 10),
)
"""What the kernel counts per user: enough for programs, and most is left to the user outside."""


@lru_cache(maxsize=64)
def kernel_limits(limits: ProcessLimits, *, memory: bool, processes: bool) -> KernelLimits:
    """`memory` and `processes`: no control group counts them for the whole tree, so each process is limited at least.

    The hard limit of CPU time lies above the soft one, so that the program gets SIGXCPU and not SIGKILL.
    """
    size = limits.file_size_mb * _MEGABYTE
    processes_most = limits.processes + _OURS
    open_files = max(limits.open_files, LEAST_OPEN_FILES)
    values = [
        (resource.RLIMIT_NOFILE, open_files, open_files),
        (resource.RLIMIT_FSIZE, size, size),
        (resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1),
        *((kind, most, most) for kind, most in _SHARED),
    ]
    if memory:
        data = max(limits.memory_mb * _MEGABYTE, _LEAST_DATA)
        values.append((resource.RLIMIT_DATA, data, data))
    if processes:
        values.append((resource.RLIMIT_NPROC, processes_most, processes_most))
    return tuple(values)
