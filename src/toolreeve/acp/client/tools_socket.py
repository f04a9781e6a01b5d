"""Our tools for one agent: MCP over a Unix socket.

The agent starts the relay as an MCP server, in its sandbox; the server is here, outside. The agent is never asked for
approvals: it would answer for itself. Between turns it may look at the tools, and use none.
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
from toolreeve.acp.client.road import BETWEEN_TURNS, Road
from toolreeve.rpc.errors import INVALID_REQUEST
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.door import new_handlers, new_view
from toolreeve.serve.mcp.pipes import LineReader, LineWriter
from toolreeve.serve.mcp.protocol import WireError
from toolreeve.serve.mcp.stdio import TOO_LONG

if TYPE_CHECKING:
    from toolreeve.serve.mcp.handlers import Handlers
    from toolreeve.serve.mcp.request_context import RequestContext
    from toolreeve.serve.mcp.tool_view import ToolView

MAX_CONNECTIONS = 16
LISTINGS = frozenset(
    {
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    }
)
"""What an agent may ask for between its turns."""


class AgentToolsConnection(McpConnection):
    """Calls of an agent, as long as its turn lasts."""

    def __init__(self, handlers: "Handlers", writer: LineWriter, view: "ToolView", road: Road) -> None:
        asker = lambda: road.peer  # noqa: E731
        super().__init__(handlers, writer, session=road.session, principal=road.principal, view=view, asker=asker)
        self._road = road

    def _admit(self, request_id: Any, method: str, params: Any) -> "RequestContext":
        if not self._road.in_turn and method not in LISTINGS:
            raise WireError(INVALID_REQUEST, BETWEEN_TURNS)
        return super()._admit(request_id, method, params)

    async def end_turn(self) -> None:
        await self._cancel_running()


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
    def __init__(self, handlers: "Handlers", view: "ToolView", road: Road) -> None:
        self._handlers = handlers
        self._view = view
        self._road = road
        self.open: dict[_SocketProtocol, Any] = {}
        self._finishing: set[asyncio.Task[None]] = set()

    def new_connection(self, writer: LineWriter) -> AgentToolsConnection:
        return AgentToolsConnection(self._handlers, writer, self._view, self._road)

    async def end_turn(self) -> None:
        """Cancel the calls that still run."""
        for protocol in list(self.open):
            await protocol.connection.end_turn()

    def finish(self, connection: McpConnection) -> None:
        task = asyncio.create_task(connection.finish(0))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def close(self) -> None:
        for protocol in list(self.open):
            protocol.connection_lost(None)
        await asyncio.gather(*self._finishing, return_exceptions=True)


@asynccontextmanager
async def serve_tools(road: Road, folder: Path, *, name: str) -> AsyncIterator[tuple[ToolsSocket, dict[str, Any]]]:
    """Yields the service, and the entry for `mcpServers` of a session."""
    handlers = new_handlers(road.reeve)
    service = ToolsSocket(handlers, new_view(road.reeve, search=False, role=road.principal.role), road)
    path = folder / f"{name}.sock"
    server = await asyncio.get_running_loop().create_unix_server(lambda: _SocketProtocol(service), sock=_listen(path))
    try:
        command = [sys.executable, "-I", "-S", relay.__file__, str(folder), path.name]
        yield service, {"name": name, "command": command[0], "args": command[1:], "env": []}
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
