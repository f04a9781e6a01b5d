"""The `Transport` protocol: JSON messages to and from one server.

A transport does not interpret the messages. It bounds what it receives and what it queues, and never blocks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolreeve.core.mcp import RpcError
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.rpc.messages import Message
from toolreeve.upstream.server_spec import Kind as Kind
from toolreeve.upstream.server_spec import ServerSpec

OnMessage = Callable[[Message], None]
OnLost = Callable[[str], None]


class ServerUnavailable(Exception):
    """The server cannot be reached, has exited, or violates the protocol. The message is for people."""


class RequestRefused(ServerUnavailable):
    """The server responds but refuses the handshake. `not_mcp`: the response is not one of the protocol."""

    def __init__(self, message: str, *, not_mcp: bool = False) -> None:
        super().__init__(message)
        self.not_mcp = not_mcp


class RemoteError(RpcError):
    """The server answered a request with an error."""


class Transport(Protocol):
    """One connection to one server, opened once and closed once."""

    @property
    def kind(self) -> Kind: ...

    async def open(self, on_message: OnMessage, on_lost: OnLost) -> None:
        """`on_message` is called for every message; `on_lost` once, with the reason, when no more will come.

        Neither is called after `close`. Raises ServerUnavailable.
        """
        ...

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        """Returns at once. Only HTTP transports use the headers. Raises ServerUnavailable, and ValueError for what is
        not JSON."""
        ...

    async def close(self) -> None:
        """When it returns, nothing is left of the server that was ours to end. Calling it again does nothing."""
        ...

    @property
    def not_mcp(self) -> bool:
        """Whether the last refusal was no message of the protocol: the URL may not be an MCP endpoint."""
        ...

    def last_output(self) -> str:
        """The last that the server said outside of the protocol, made visible; empty if nothing."""
        ...


Connect = Callable[[ServerSpec, Scrubber], Transport]
"""Makes the transport to a server. The scrubber learns the secrets that come up while connecting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How we introduce ourselves to servers."""

    info: Mapping[str, Any]
    roots: Sequence[Mapping[str, Any]] = ()
