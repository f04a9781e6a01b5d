"""Whose program is at the other end of a connection from this machine? Everybody who is logged in reaches loopback.

Where no token is asked for, only programs of the user who serves come in. Linux tells whose a socket is, and whoever it
does not tell of is refused; elsewhere nobody tells, and all of this machine come in.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Collection

from starlette.responses import PlainTextResponse

from toolreeve.serve.owners import Address, owner
from toolreeve.serve.quick import QuickProtocol

_REFUSAL = PlainTextResponse(
    "only programs of the user who serves this come in without a token; configure serve.tokens", status_code=403
)


class NeighbourProtocol(QuickProtocol):
    """`welcome` are the users whose programs come in; the superuser can do all that we can anyway. `whose` finds out
    whose the far end is, where the machine is one that `tells`."""

    welcome: Collection[int] = frozenset({0, os.getuid()})
    whose: Callable[[int, Address, Address], int | None] = staticmethod(owner)
    tells = sys.platform == "linux"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # What a client sent before it broke off is still read: nothing that fails here may leave the door open.
        door, self.app = self.app, _REFUSAL
        super().connection_made(transport)
        if self._is_welcome(transport.get_extra_info("socket")):
            self.app = door

    def _is_welcome(self, near: socket.socket) -> bool:
        try:
            return self.whose(near.family, near.getpeername()[:2], near.getsockname()[:2]) in self.welcome
        except FileNotFoundError:
            return not self.tells
        except OSError:
            return False
