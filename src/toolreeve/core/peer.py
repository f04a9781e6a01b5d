"""Who is at the other end of the call, as far as one may talk back to them while it runs?

A door that can carry more than an answer — progress, log lines, a question to the person — hands its end of the line to
the call as a `Peer`. A tool elsewhere speaks through it to the client that called; an approval is asked through it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol


class Era(StrEnum):
    """The two ways in which MCP is spoken: after a handshake with requests both ways, or one request at a time."""

    LEGACY = "2025-11-25"
    MODERN = "2026-07-28"


class RpcError(Exception):
    """A request of JSON-RPC that is answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def to_dict(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else error | {"data": self.data}


class PeerError(RpcError):
    """The other end answered a request with an error, or could not be asked at all."""


class Peer(Protocol):
    """One call's line back to its caller.

    `responses` and `state` are what a client of the modern era sent along with a repeated request for the tool itself
    (answers to what an upstream server wanted to know, and that server's own opaque state). `decision` is what it sent
    for us: the verified answer to an approval, with the binding of the call that was asked about.
    """

    @property
    def era(self) -> Era: ...

    @property
    def session(self) -> str:
        """The same for all calls of one client connection."""
        ...

    @property
    def credential(self) -> str:
        """Names what the client showed to be let in; empty where nothing was asked for."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared: `elicitation`, `sampling`, `roots`…"""
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
        """Ask the client something, in the legacy era only. Raises PeerError."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something about this call. Progress needs no token: the door knows it."""
        ...

    def defer(self, question: Any) -> None:
        """Keep a question that the client will be asked with the answer to this request."""
        ...


class Decided:
    """A person's answer that came with a repeated request. `binding` names the call it was given for."""

    __slots__ = ("answer", "binding")

    def __init__(self, binding: str, answer: Mapping[str, Any]) -> None:
        self.binding, self.answer = binding, answer
