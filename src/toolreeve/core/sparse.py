"""Ranges of a sparse file that hold data; the rest are holes."""

import errno
import os
from collections.abc import Iterator


def data_ranges(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Start and end of each range within `size`. Moves the descriptor's position."""
    at = 0
    while at < size:
        try:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as problem:
            if problem.errno != errno.ENXIO:
                raise
            return  # only a hole is left
        end = os.lseek(descriptor, at, os.SEEK_HOLE)
        yield at, end
        at = end
