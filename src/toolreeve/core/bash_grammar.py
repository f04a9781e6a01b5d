"""What may bash's grammar be shown? ASCII only: its scanner looks characters up in a table that ends there, and with
others the whole process would end.

Every other byte is masked by one that stands in words as freely and never in a name, so that places stay what they are.
"""

_MASK = bytes(byte if byte < 0x80 else ord("%") for byte in range(256))


def masked(source: bytes) -> bytes:
    """As long as the source: what is found at a place in one is at that place in the other."""
    return source.translate(_MASK)
