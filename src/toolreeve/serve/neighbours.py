"""Whose program is at the other end of a connection from this machine? Everybody who is logged in reaches loopback.

Where no token is asked for, only programs of the user who serves come in. Linux tells whose a socket is; elsewhere
nobody does, and all of this machine come in.
"""

import asyncio
import os
from collections.abc import Collection

from starlette.responses import PlainTextResponse

from toolreeve.serve.owners import Address, owner
from toolreeve.serve.quick import QuickProtocol

_REFUSAL = PlainTextResponse(
    "only programs of the user who serves this come in without a token; configure serve.tokens", status_code=403
)


class NeighbourProtocol(QuickProtocol):
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
