"""The caller of a held agent, as calls inside it see it."""

import asyncio
from collections.abc import Callable
from typing import Any

from toolreeve.core.peer import NestedAsker, Peer, PeerUnavailable


class NestedPeer:
    """Questions of a nested call are asked where the outer call came from, while both wait. `show` gets the progress of
    the nested call."""

    defers = False
    decision = None

    def __init__(self, outer: Peer | None, show: Callable[[str], None] | None = None) -> None:
        self._outer = outer
        self._show = show
        self.session = outer.session if outer is not None else ""
        self.credential = outer.credential if outer is not None else ""
        self.wants_progress = show is not None

    @property
    def can_ask(self) -> bool:
        if self._outer is None:
            return False
        return isinstance(self._outer, NestedAsker) or (self._outer.can_ask and not self._outer.defers)

    async def ask(self, request: Any) -> Any:
        """The answer comes through the store if the outer caller only shows the question."""
        if self._outer is None:
            raise PeerUnavailable
        if isinstance(self._outer, NestedAsker):
            await self._outer.show_nested(request)
            await asyncio.Event().wait()
        return await self._outer.ask(request)

    async def progress(self, text: str) -> None:
        if self._show is not None:
            self._show(text)
