"""Peer: the client that made a call, and the channel back to it while the call runs.

A door that can carry more than a result (progress, log lines, questions to a person) attaches a `Peer` to the call.
Upstream servers reach the calling client through it, and approvals are asked through it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol


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
    """The peer answered a request with an error, or could not be asked."""


class Peer(Protocol):
    """One call's channel back to its client.

    `responses` and `state` are what a client of the modern era sent with a repeated request for the tool itself:
    answers to an upstream server's questions, and that server's opaque state. `decision` is what it sent for us: the
    verified answer to an approval, with the binding of the call that was asked about.
    """

    @property
    def era(self) -> Era: ...

    @property
    def session(self) -> str:
        """The same for all calls of one client connection."""
        ...

    @property
    def credential(self) -> str:
        """The id of the client's token; empty if none is required."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The client's declared capabilities: `elicitation`, `sampling`, `roots`…"""
        ...

    @property
    def log_level(self) -> str | None:
        """The least severe level that the client wants; None for no log lines."""
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
        """Send a notification about this call. Progress needs no token: the door adds it."""
        ...

    def defer(self, question: Any) -> None:
        """Ask the client this question in the response to its request."""
        ...


class Decided:
    """A person's answer from a repeated request. `binding` names the call that it is for."""

    __slots__ = ("answer", "binding")

    def __init__(self, binding: str, answer: Mapping[str, Any]) -> None:
        self.binding = binding
        self.answer = answer
