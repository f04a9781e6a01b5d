"""ELF interpreters (dynamic loaders) that programs need to start.

A dynamically linked ELF program names its loader, which the kernel opens like a program.
"""

import os
import struct
from collections.abc import Iterable, Iterator

_HEADER = struct.Struct("=16xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("=IIQQQQQQ")
_INTERPRETER = 3
_64_BIT = 2
_LONGEST = 4096


def loaders(programs: Iterable[str]) -> frozenset[str]:
    """The loaders of all the programs. A file that is not a 64-bit ELF program has none."""
    return frozenset(loader for program in programs for loader in _loaders(program))


def _loaders(program: str) -> Iterator[str]:
    try:
        with open(program, "rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or head[:4] != b"\x7fELF" or head[4] != _64_BIT:
                return
            start, size, count = (_HEADER.unpack(head)[place] for place in (4, 8, 9))
            table = os.pread(file.fileno(), size * count, start)
            for at in range(0, len(table) - _SEGMENT.size + 1, size):
                kind, _, offset, _, _, length, _, _ = _SEGMENT.unpack_from(table, at)
                if kind == _INTERPRETER:
                    yield os.fsdecode(os.pread(file.fileno(), min(length, _LONGEST), offset).rstrip(b"\0"))
    except OSError:
        return
