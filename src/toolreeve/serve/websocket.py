"""WebSocket connections: an HTTP connection whose first request is an upgrade.

The connection keeps its quotas and is counted until it ends. Clients open a connection of its own for a WebSocket, so
that only the first request is looked at; anything else goes through the HTTP parser, which knows no upgrade.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from toolreeve.serve.exchange import CONNECTION

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

    from toolreeve.serve.protocol import HttpProtocol

MAX_MESSAGE = 64 * 1024
_UPGRADE = re.compile(rb"\r\nupgrade:\s*websocket\s*\r\n", re.IGNORECASE)
END = b"\r\n\r\n"


def is_upgrade(data: bytes, paths: Sequence[bytes]) -> bool:
    """Whether these first bytes of a connection are a whole request to open a WebSocket at one of these paths."""
    if not data.startswith(tuple(b"GET " + path + end for path in paths for end in (b" ", b"?"))):
        return False
    head, end, _ = data.partition(END)
    return bool(end) and _UPGRADE.search(head + b"\r\n") is not None


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """The application finds it in the scope's state, under `CONNECTION`. `serving` is the id of its credential."""

    serving: str | None = None

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        connection: "HttpProtocol",
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self})
        self.conn.max_message_size = MAX_MESSAGE
        self._connection = connection

    def identify(self, owner: str) -> None:
        """Count the connection for its owner. Raises AccessRefused."""
        self._connection.identify(owner)

    def end_revoked(self) -> None:
        if self.close_sent or not self.handshake_complete:
            self.transport.abort()
            return
        self.conn.send_close(1008, "the credential is no longer accepted")
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1008})
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connection.connection_lost(exc)
