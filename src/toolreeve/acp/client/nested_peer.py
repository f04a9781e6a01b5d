"""The caller of an agent's tool, as nested calls see it."""

import asyncio
from typing import Any

from toolreeve.core.peer import NestedAsker, Peer


class NestedPeer:
    """Questions of a nested call are asked where the outer call came from, while both wait."""

    wants_progress = False
    defers = False
    decision = None

    def __init__(self, outer: Peer) -> None:
        self._outer = outer
        self.session = outer.session
        self.credential = outer.credential

    @property
    def can_ask(self) -> bool:
        return isinstance(self._outer, NestedAsker) or (self._outer.can_ask and not self._outer.defers)

    async def ask(self, request: Any) -> Any:
        """The answer comes through the store if the outer caller only shows the question."""
        if isinstance(self._outer, NestedAsker):
            await self._outer.show_nested(request)
            await asyncio.Event().wait()
        return await self._outer.ask(request)

    async def progress(self, text: str) -> None:
        """Not wanted."""
