"""Messages of supervisor, slot and reaper to the runtime: fixed-size structs."""

import errno
import struct

SLOT_REPORT = struct.Struct("=cidQ?")
"""Kind, wait status or errno, CPU time in seconds, peak memory in KB, and whether the slot can be used again.

Kinds: X exited; M, C and P killed for memory, CPU time and processes; F failed to start.
"""

REAPER_REPORT = struct.Struct("=ci")
"""Kind and number. S started, with its pid (and a pidfd attached); F failed to start, with the errno; X exited and
nothing of it is left, with the wait status."""

STDIN_CLOSED, TERMINATED = 0.5, 1.5
"""Seconds that a server has to exit after its stdin was closed, and after SIGTERM."""

SLOT, COVERED = b"slot", b"covered"
"""Replies of a supervisor that did what was requested; otherwise one of the following marks and the reason."""
UNSUPPORTED, TRANSIENT = b"-", b"?"
_UNSUPPORTED_ERRORS = {
    errno.EPERM,
    errno.EACCES,
    errno.ENOSYS,
    errno.EINVAL,
    errno.EOPNOTSUPP,
    errno.ENODEV,
    errno.ENOPROTOOPT,
    errno.EAFNOSUPPORT,
    errno.EUSERS,
    None,
}
"""Errors of a kernel that lacks a mechanism or denies it to us. Any other error may be gone on the next attempt."""


def failure(problem: Exception) -> bytes:
    """Why a sandbox, slot or cover cannot be made, marked as unsupported by this machine or transient."""
    is_unsupported = isinstance(problem, OSError) and problem.errno in _UNSUPPORTED_ERRORS
    mark = UNSUPPORTED if is_unsupported else TRANSIENT
    return mark + f"{type(problem).__name__}: {problem}".encode()
