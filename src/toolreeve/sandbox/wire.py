"""What does a slot tell the runtime? How a command ended, in one short message."""

import struct

ENDED = struct.Struct("=ciddQ")
"""Kind, wait status or error number, seconds of the user and of the system, greatest memory in KB.

Kinds: X it ended, M, C and P it was ended for memory, CPU time and processes, F it could not be started.
"""
