"""What MCP server and client share: eras, JSON-RPC errors, the peer."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from toolreeve.core.peer import Peer


class Era(StrEnum):
    """The two eras of MCP: a handshake and requests both ways, or self-contained requests."""

    LEGACY = "2025-11-25"
    MODERN = "2026-07-28"


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_dict(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else error | {"data": self.data}


class PeerError(RpcError):
    """The client answered a request with an error, or could not be asked."""


@runtime_checkable
class McpPeer(Peer, Protocol):
    """A caller that is an MCP client: upstream servers can reach it with requests and notifications of MCP.

    `responses` and `state` are what a client of the modern era sent with a repeated request for the tool itself:
    answers to an upstream server's questions, and that server's opaque state.
    """

    @property
    def era(self) -> Era: ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The client's declared capabilities: `elicitation`, `sampling`, `roots`…"""
        ...

    @property
    def log_level(self) -> str | None:
        """The least severe level that the client wants; None for no log lines."""
        ...

    @property
    def responses(self) -> Mapping[str, Any] | None: ...

    @property
    def state(self) -> str | None: ...

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request to the client, in the legacy era only. Raises PeerError."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification about this call. Progress needs no token: the door adds it."""
        ...
