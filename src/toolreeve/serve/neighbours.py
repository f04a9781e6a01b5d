"""Whose program is at the other end of a connection from this machine? Everybody who is logged in reaches loopback.

Where no token is asked for, only programs of the user who serves come in. Linux tells whose a socket is; elsewhere
nobody does, and all of this machine come in.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Collection
from pathlib import Path

from starlette.responses import PlainTextResponse

from toolreeve.serve.corking import CorkedProtocol

TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_ESTABLISHED = b"01"
_REFUSAL = PlainTextResponse(
    "only programs of the user who serves this come in without a token; configure serve.tokens", status_code=403
)

Address = tuple[str, int]


class NeighbourProtocol(CorkedProtocol):
    """`welcome` are the users whose programs come in; the superuser can do all that we can anyway."""

    welcome: Collection[int] = frozenset({0, os.getuid()})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        near = transport.get_extra_info("socket")
        if not self._is_welcome(near.family, near.getpeername(), near.getsockname()):
            self.app = _REFUSAL

    def _is_welcome(self, family: int, far: Address, near: Address) -> bool:
        try:
            return owner(family, far, near) in self.welcome
        except FileNotFoundError:
            return True


def owner(family: int, far: Address, near: Address) -> int | None:
    """The user of the program that holds the far end; None if none does any more. Raises FileNotFoundError where
    that is not told."""
    ends = f": {_written(family, far)} {_written(family, near)} ".encode()
    _, found, rest = TABLES[socket.AddressFamily(family)].read_bytes().partition(ends)
    state, _, _, _, user = rest.split(None, 5)[:5] if found else (b"", b"", b"", b"", b"-1")
    return int(user) if state == _ESTABLISHED else None


def _written(family: int, address: Address) -> str:
    packed = socket.inet_pton(family, address[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
