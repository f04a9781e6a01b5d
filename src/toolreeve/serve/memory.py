"""Allocator setting: large freed blocks are returned to the operating system.

By default glibc raises its mmap threshold with every large block that is freed, and then keeps the memory of a burst of
large responses for good, because small live blocks lie between the freed ones.
"""

import ctypes

_M_MMAP_THRESHOLD = -3
_LARGE = 256 * 1024


def give_back_memory() -> bool:
    """Applies to the whole process; False if the C library has no such setting."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE))
    except AttributeError:
        return False
