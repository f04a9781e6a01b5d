"""What do a slot and a minder tell the runtime? How a program began and ended, each in one short message."""

import struct

ENDED = struct.Struct("=ciddQ")
"""Kind, wait status or error number, seconds of the user and of the system, greatest memory in KB.

Kinds: X it ended, M, C and P it was ended for memory, CPU time and processes, F it could not be started.
"""

MINDED = struct.Struct("=ci")
"""Kind and number. S it runs, with its pid (and a pidfd beside it), F it could not be started, with the error number,
X it has ended and nothing is left of it, with the wait status."""

STDIN_CLOSED, TERMINATED = 0.5, 1.5
"""Seconds that a server has to end by itself after its input was closed, and after it was told to."""
