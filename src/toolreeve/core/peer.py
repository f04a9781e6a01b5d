"""Peer: the connection from a running call back to its client.

A door that can carry more than a result — progress, log lines, a question to the user — passes a `Peer` with the call.
An upstream tool talks through it to the calling client, and approvals are requested through it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol


class Era(StrEnum):
    """The two forms of MCP: after a handshake with requests both ways, or one request at a time."""

    LEGACY = "2025-11-25"
    MODERN = "2026-07-28"


class RpcError(Exception):
    """A JSON-RPC request that fails with an error response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_dict(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else error | {"data": self.data}


class PeerError(RpcError):
    """The client answered a request with an error, or could not be reached."""


class Peer(Protocol):
    """One call's connection back to its client.

    `responses` and `state` are sent by a client of the modern era with a repeated request, for the tool itself (answers
    to an upstream server's questions, and that server's own opaque state). `decision` is for Toolreeve: the verified
    answer to an approval, with the binding of the call it was asked about.
    """

    @property
    def era(self) -> Era: ...

    @property
    def session(self) -> str:
        """The same for all calls of one client connection."""
        ...

    @property
    def credential(self) -> str:
        """Identifies the client's credential; empty if none was required."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The client's declared capabilities: `elicitation`, `sampling`, `roots`…"""
        ...

    @property
    def log_level(self) -> str | None:
        """The least severe log line that the client wants; None for none."""
        ...

    @property
    def wants_progress(self) -> bool: ...

    @property
    def responses(self) -> Mapping[str, Any] | None: ...

    @property
    def state(self) -> str | None: ...

    @property
    def decision(self) -> "Decided | None": ...

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request to the client, in the legacy era only. Raises PeerError."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification about this call. Progress needs no token: the door knows it."""
        ...

    def defer(self, question: Any) -> None:
        """Keep a question for the client, to be sent with the response to this request."""
        ...


class Decided:
    """A person's answer that came with a repeated request. `binding` names the call it was given for."""

    __slots__ = ("answer", "binding")

    def __init__(self, binding: str, answer: Mapping[str, Any]) -> None:
        self.binding = binding
        self.answer = answer
