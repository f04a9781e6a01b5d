"""Our tools for one agent: MCP over a Unix socket.

The agent starts the relay as an MCP server, in its sandbox; the server is here, outside. The agent is never asked for
approvals: it would answer for itself.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.acp.client import relay
from toolreeve.core.call import Principal
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.door import new_handlers, new_view
from toolreeve.serve.mcp.pipes import LineReader, LineWriter
from toolreeve.serve.mcp.stdio import TOO_LONG

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.mcp.handlers import Handlers
    from toolreeve.serve.mcp.tool_view import ToolView

MAX_CONNECTIONS = 16


class _SocketProtocol(asyncio.Protocol):
    """One connection: its lines go to an MCP connection of its own."""

    def __init__(self, service: "ToolsSocket") -> None:
        self._service = service
        self._writer = LineWriter(asyncio.get_running_loop(), self._ended)
        self.connection = service.new_connection(self._writer)
        self._reader = LineReader(self.connection.receive, lambda: self.connection.refuse(TOO_LONG), self._ended)
        self.data_received = self._reader.data_received  # type: ignore[method-assign]
        self.pause_writing = self._writer.pause_writing  # type: ignore[method-assign]
        self.resume_writing = self._writer.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: Any) -> None:
        if len(self._service.open) >= MAX_CONNECTIONS:
            transport.abort()
            return
        self._writer.connection_made(transport)
        self._service.open[self] = transport

    def connection_lost(self, problem: Exception | None) -> None:
        self._writer.connection_lost(problem)

    def _ended(self) -> None:
        if (transport := self._service.open.pop(self, None)) is not None:
            transport.close()
            self._service.finish(self.connection)


class ToolsSocket:
    def __init__(self, handlers: "Handlers", view: "ToolView", session: str, principal: Principal) -> None:
        self._handlers = handlers
        self._view = view
        self._session = session
        self._principal = principal
        self.open: dict[_SocketProtocol, Any] = {}
        self._finishing: set[asyncio.Task[None]] = set()

    def new_connection(self, writer: LineWriter) -> McpConnection:
        return McpConnection(
            self._handlers, writer, session=self._session, principal=self._principal, view=self._view, asked=False
        )

    def finish(self, connection: McpConnection) -> None:
        task = asyncio.create_task(connection.finish(0))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def close(self) -> None:
        for protocol in list(self.open):
            protocol.connection_lost(None)
        await asyncio.gather(*self._finishing, return_exceptions=True)


@asynccontextmanager
async def serve_tools(
    reeve: "Toolreeve", folder: Path, *, name: str, session: str, principal: Principal
) -> AsyncIterator[dict[str, Any]]:
    """Yields the entry for `mcpServers` of a session."""
    handlers = new_handlers(reeve)
    service = ToolsSocket(handlers, new_view(reeve, search=False, role=principal.role), session, principal)
    path = folder / f"{name}.sock"
    server = await asyncio.get_running_loop().create_unix_server(lambda: _SocketProtocol(service), sock=_listen(path))
    try:
        command = [sys.executable, "-I", "-S", relay.__file__, str(folder), path.name]
        yield {"name": name, "command": command[0], "args": command[1:], "env": []}
    finally:
        server.close()
        path.unlink(missing_ok=True)
        await service.close()
        handlers.close()


def _listen(path: Path) -> socket.socket:
    """Bound relative to its folder: the address of a socket is short. The folder is private to us, and
    read-only for the agent: it cannot put a link in the way of chmod."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o777)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener
