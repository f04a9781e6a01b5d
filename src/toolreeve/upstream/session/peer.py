"""The MCP view of a caller that speaks another protocol.

Upstream servers see it as a client without capabilities: it gets progress, and is never asked.
"""

from collections.abc import Mapping
from typing import Any

from toolreeve.core.mcp import Era, McpPeer, PeerError
from toolreeve.core.peer import Peer, PriorAnswer, PriorApproval
from toolreeve.rpc.errors import METHOD_NOT_FOUND


def as_mcp_peer(peer: Peer | None) -> McpPeer | None:
    if peer is None or isinstance(peer, McpPeer):
        return peer
    return PlainPeer(peer)


class PlainPeer:
    era = Era.LEGACY
    log_level: str | None = None
    responses: Mapping[str, Any] | None = None
    state: str | None = None

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.session = peer.session
        self.credential = peer.credential
        self.wants_progress = peer.wants_progress
        self.can_ask = peer.can_ask
        self.defers = peer.defers
        self.capabilities: Mapping[str, Any] = {}

    @property
    def decision(self) -> PriorApproval | PriorAnswer | None:
        return self._peer.decision

    async def ask(self, request: Any) -> Any:
        return await self._peer.ask(request)

    async def progress(self, text: str) -> None:
        await self._peer.progress(text)

    async def request(self, method: str, _: Mapping[str, Any]) -> dict[str, Any]:
        raise PeerError(METHOD_NOT_FOUND, f"the caller does not support {method!r}")

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        text = params.get("message")
        if method == "notifications/progress" and isinstance(text, str):
            await self._peer.progress(text)
