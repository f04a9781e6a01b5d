"""Resource subscriptions of one server, across reconnects.

Each resource counts once; the doors count its subscribers. In the legacy era each is a request of its own; in the
modern era one long-lived request names them all.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from toolreeve.core.mcp import Era
from toolreeve.rpc.errors import INVALID_PARAMS
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable

MAX_SUBSCRIPTIONS = 10_000
REOPEN_SECONDS = 1.0
_OPTIONS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


class Subscriptions:
    """Subscriptions outlive a connection: `attach` renews them on the next one."""

    def __init__(self) -> None:
        self._uris: dict[str, None] = {}
        self._session: UpstreamSession | None = None
        self._listener: asyncio.Task[None] | None = None

    async def attach(self, session: UpstreamSession) -> None:
        """Raises ServerUnavailable."""
        await self.detach()
        self._session = session
        if session.era is Era.MODERN:
            await self._listen()
            return
        for uri in list(self._uris):
            with contextlib.suppress(RemoteError):  # the resource no longer exists: it will not change
                await session.request("resources/subscribe", {"uri": uri})

    async def detach(self) -> None:
        self._session = None
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait({self._listener})
            self._listener = None

    async def add(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises RemoteError, ServerUnavailable."""
        uri = _uri(params)
        if uri not in self._uris and len(self._uris) >= MAX_SUBSCRIPTIONS:
            raise RemoteError(INVALID_PARAMS, f"more than {MAX_SUBSCRIPTIONS} subscriptions")
        result = await self._send("resources/subscribe", params)
        if uri not in self._uris:
            self._uris[uri] = None
            await self._listen()
        return result

    async def remove(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises RemoteError, ServerUnavailable."""
        uri = _uri(params)
        if uri in self._uris:
            del self._uris[uri]
            await self._listen()
        return await self._send("resources/unsubscribe", params)

    async def _send(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._session is None:
            raise ServerUnavailable("the connection was lost")
        if self._session.era is Era.MODERN:
            return {}
        return await self._session.request(method, params)

    async def _listen(self) -> None:
        """Replace the long-lived request, which only the modern era has."""
        session = self._session
        if session is None or session.era is Era.LEGACY:
            return
        await self.detach()
        self._session = session
        wanted = self._filter(session.server_capabilities)
        if wanted:
            self._listener = asyncio.create_task(_keep_open(session, {"notifications": wanted}))

    def _filter(self, capabilities: Mapping[str, Any]) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        for name, option in _OPTIONS.items():
            capability = capabilities.get(name)
            if isinstance(capability, dict) and capability.get("listChanged"):
                wanted[option] = True
        if self._uris:
            wanted["resourceSubscriptions"] = sorted(self._uris)
        return wanted


async def _keep_open(session: UpstreamSession, params: Mapping[str, Any]) -> None:
    """Send the long-lived request again whenever it ends; a server that refuses it is left alone."""
    while session.alive:
        try:
            await session.request("subscriptions/listen", params)
        except (RemoteError, ServerUnavailable):
            return
        await asyncio.sleep(REOPEN_SECONDS)


def _uri(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RemoteError(INVALID_PARAMS, "a subscription needs the uri of a resource")
    return uri
