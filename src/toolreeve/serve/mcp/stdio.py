"""MCP over stdin and stdout: one client, without the SDK.

Only protocol messages reach stdout. The end of stdin, SIGTERM, SIGINT or a closed stdout end the service gracefully.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from toolreeve.core.call import LOCAL, Principal, new_id
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.serve.mcp.connection import McpConnection, RequestHandlers
from toolreeve.serve.mcp.pipes import LineReader, LineWriter, Pipes

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView

LAST_RESPONSES_TIMEOUT = 1.0
"""Seconds that running requests get to complete after the input has ended."""
DRAIN_TIMEOUT = 2.0
TOO_LONG = f"Invalid Request: the message exceeds {MAX_MESSAGE} bytes"


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


class StdioService:
    """A connection over the process's own pipes. `finished` is set when the client is gone or a signal arrives."""

    def __init__(
        self, handlers: RequestHandlers, pipes: Pipes, view: "ToolView | None" = None, principal: Principal = LOCAL
    ) -> None:
        self.finished = asyncio.Event()
        self._stopped = False
        self._closed = False
        self._pipes = pipes
        self._writer = LineWriter(asyncio.get_running_loop(), self.finished.set)
        self.connection = McpConnection(handlers, self._writer, session=new_id(), principal=principal, view=view)

    async def start(self) -> None:
        """On return, messages sent before have been received, and answered if that needs no waiting."""
        loop = asyncio.get_running_loop()
        connection = self.connection
        writer = self._writer
        lines = LineReader(connection.receive, lambda: connection.refuse(TOO_LONG), self.finished.set)
        self._sink, _ = await loop.connect_write_pipe(lambda: writer, self._pipes.sink)
        self._source, _ = await loop.connect_read_pipe(lambda: lines, self._pipes.source)
        writer.on_pause = self._source.pause_reading
        writer.on_resume = self._resume
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        for _ in range(4):  # loop turns: read, dispatch, answer, write
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._source.close()
        await self.connection.finish(0 if self._stopped else LAST_RESPONSES_TIMEOUT)
        await self._writer.drain(DRAIN_TIMEOUT)
        self._sink.close()

    def _resume(self) -> None:
        self._source.resume_reading()
        self.connection.resume()

    def _stop(self) -> None:
        self._stopped = True
        self.finished.set()


@asynccontextmanager
async def serve_stdio(
    handlers: RequestHandlers, pipes: Pipes, view: "ToolView | None" = None, principal: Principal = LOCAL
) -> AsyncIterator[StdioService]:
    """Without a view, the handlers must not need one, or must set it themselves."""
    service = StdioService(handlers, pipes, view, principal)
    await service.start()
    try:
        yield service
    finally:
        await service.close()
