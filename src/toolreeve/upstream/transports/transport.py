"""How is a server reached? Over a `Transport`: messages go out and come in as plain JSON objects, until it is lost.

A line knows nothing of what is said over it. It bounds what it takes in and what it holds back, and never blocks.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from toolreeve.core.mcp import RpcError

Message = dict[str, Any]
Kind = Literal["stdio", "http", "sse"]
Hear = Callable[[Message], None]
Lost = Callable[[str], None]

MAX_MESSAGE = 64 << 20
"""Bytes of one message, and of all that a server does not take from us."""


class ServerUnavailable(Exception):
    """The server cannot be reached, has ended, or does not speak as it should. The message is for people."""


class RequestRefused(ServerUnavailable):
    """The server answers, and does not begin to speak in the way it was asked to. `unspoken`: what it answers is none
    of the protocol's words."""

    def __init__(self, message: str, *, unspoken: bool = False) -> None:
        super().__init__(message)
        self.unspoken = unspoken


class RemoteError(RpcError):
    """The server answered a request with an error."""


class Transport(Protocol):
    """One connection to one server, opened once and closed once."""

    @property
    def kind(self) -> Kind: ...

    async def open(self, hear: Hear, lost: Lost) -> None:
        """`hear` is called for every message; `lost` once, with the reason, when nothing will come any more.

        Neither is called after `close`. Raises ServerAway.
        """
        ...

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        """Returns at once. Headers are for lines that have such. Raises ServerAway, and ValueError for no JSON."""
        ...

    async def close(self) -> None:
        """When it returns, nothing of the server is left that was ours to end. Once more does nothing."""
        ...

    @property
    def unspoken(self) -> bool:
        """Whether what was answered last is none of the protocol's words: nobody there may know it."""
        ...

    def last_words(self) -> str:
        """What the server said beside the protocol last, made visible; empty where it said nothing."""
        ...
