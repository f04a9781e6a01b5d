"""Masking of non-ASCII bytes for the bash grammar.

Its scanner indexes a table that ends at ASCII, and any other character would crash the process. Every other byte is
masked by one that is as common in words and never part of a name, so that offsets stay the same.
"""

_MASK = bytes(byte if byte < 0x80 else ord("%") for byte in range(256))


def masked(source: bytes) -> bytes:
    """As long as the source: an offset in one is the same offset in the other."""
    return source.translate(_MASK)
