"""Allocator settings: large blocks go back to the system when they are freed.

glibc raises the size from which it does so with every large block that is freed, and then keeps what a burst of large
responses took: for good, since small blocks that stay lie between those that went.
"""

import ctypes

_M_MMAP_THRESHOLD = -3
_LARGE = 256 * 1024


def give_back_memory() -> bool:
    """For this process; False where the C library has no such setting."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE))
    except AttributeError:
        return False
