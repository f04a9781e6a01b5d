"""What do a yard, a slot and a minder tell the runtime? How a program began and ended, each in one short message."""

import errno
import struct

ENDED = struct.Struct("=ciddQ?")
"""Kind, wait status or error number, seconds of the user and of the system, greatest memory in KB, and whether the slot
is as it was before.

Kinds: X it ended, M, C and P it was ended for memory, CPU time and processes, F it could not be started.
"""

MINDED = struct.Struct("=ci")
"""Kind and number. S it runs, with its pid (and a pidfd beside it), F it could not be started, with the error number,
X it has ended and nothing is left of it, with the wait status."""

STDIN_CLOSED, TERMINATED = 0.5, 1.5
"""Seconds that a server has to end by itself after its input was closed, and after it was told to."""

SLOT, COVERED = b"slot", b"covered"
"""What a yard answers when it did as it was asked; else, one of the following and the reason."""
LACKING, PASSING = b"-", b"?"
_LACKING = {
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
"""What a kernel answers for what it does not have or does not give us. All else may be different a moment later."""


def failure(problem: Exception) -> bytes:
    """Why a place, a slot or a cover cannot be made: first whether the machine lacks something or it may pass."""
    lacking = isinstance(problem, OSError) and problem.errno in _LACKING
    mark = LACKING if lacking else PASSING
    return mark + f"{type(problem).__name__}: {problem}".encode()
