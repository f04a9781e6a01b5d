"""Which resources of a server does somebody want to hear about? Doors count who; here each is known once.

In the legacy era each is a request of its own; in the modern era one long request names them all.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from toolreeve.core.mcp import Era
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable

MOST = 10_000
AGAIN = 1.0
_OPTIONS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


class Subscriptions:
    """What is wanted outlives a connection: `attach` says it all to the next one."""

    def __init__(self) -> None:
        self._wanted: dict[str, None] = {}
        self._session: UpstreamSession | None = None
        self._listening: asyncio.Task[None] | None = None

    async def attach(self, session: UpstreamSession) -> None:
        """Raises ServerAway."""
        await self.detach()
        self._session = session
        if session.era is Era.MODERN:
            await self._listen()
            return
        for uri in list(self._wanted):
            with contextlib.suppress(RemoteError):  # it is not there any more: nothing will be heard of it
                await session.request("resources/subscribe", {"uri": uri})

    async def detach(self) -> None:
        self._session = None
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
            self._listening = None

    async def add(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises RemoteError, ServerAway."""
        uri = _uri(params)
        if uri not in self._wanted and len(self._wanted) >= MOST:
            raise RemoteError(-32602, f"more than {MOST} subscriptions")
        answer = await self._say("resources/subscribe", params)
        if uri not in self._wanted:
            self._wanted[uri] = None
            await self._listen()
        return answer

    async def remove(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises RemoteError, ServerAway."""
        if self._wanted.pop(_uri(params), MOST) is None:
            await self._listen()
        return await self._say("resources/unsubscribe", params)

    async def _say(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._session is None:
            raise ServerUnavailable("the connection was lost")
        return {} if self._session.era is Era.MODERN else await self._session.request(method, params)

    async def _listen(self) -> None:
        """Say anew what is wanted. Only the modern era has the long request."""
        session = self._session
        if session is None or session.era is Era.LEGACY:
            return
        await self.detach()
        self._session = session
        if wanted := self._filter(session.server_capabilities):
            self._listening = asyncio.create_task(_hold(session, {"notifications": wanted}))

    def _filter(self, capabilities: Mapping[str, Any]) -> dict[str, Any]:
        offered = {
            option: True
            for name, option in _OPTIONS.items()
            if isinstance(known := capabilities.get(name), dict) and known.get("listChanged")
        }
        return offered | ({"resourceSubscriptions": sorted(self._wanted)} if self._wanted else {})


async def _hold(session: UpstreamSession, params: Mapping[str, Any]) -> None:
    """Keep the long request open; a server that has none of it is left alone."""
    while session.alive:
        try:
            await session.request("subscriptions/listen", params)
        except (RemoteError, ServerUnavailable):
            return
        await asyncio.sleep(AGAIN)


def _uri(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RemoteError(-32602, "a subscription names the uri of a resource")
    return uri
