"""WebSocket connections: an HTTP connection whose first request is an upgrade.

The connection keeps its quotas and is counted until it ends. Clients open a connection of its own for a WebSocket, so
that only the first request is looked at; anything else goes through the HTTP parser, which knows no upgrade.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

MAX_MESSAGE = 64 * 1024
_UPGRADE = re.compile(rb"\r\nupgrade:\s*websocket\s*\r\n", re.IGNORECASE)
END = b"\r\n\r\n"


def is_upgrade(data: bytes, path: bytes) -> bool:
    """Whether these first bytes of a connection are a whole request to open a WebSocket at this path."""
    if not data.startswith((b"GET " + path + b" ", b"GET " + path + b"?")):
        return False
    head, end, _ = data.partition(END)
    return bool(end) and _UPGRADE.search(head + b"\r\n") is not None


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """`ended` is called when the connection is lost."""

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        ended: Callable[[Exception | None], None],
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.conn.max_message_size = MAX_MESSAGE
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._ended(exc)
