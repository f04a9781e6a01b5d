"""How is MCP served over stdin and stdout? One client for the life of the process, without the SDK, fast to start.

Nothing but protocol reaches stdout. The end of stdin, SIGTERM or a client that is gone end the service, in good order.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from toolreeve.core.call import new_id
from toolreeve.serve.mcp.connection import McpConnection, RequestHandlers
from toolreeve.serve.mcp.pipes import MAX_LINE_BYTES, LineReader, LineWriter, Pipes

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView

LAST_RESPONSES_TIMEOUT = 1.0
"""How many seconds requests get to be answered after the last one has come."""
DRAIN_TIMEOUT = 2.0
TOO_LONG = f"Invalid Request: a message may have {MAX_LINE_BYTES} bytes at most"


def run(main: Coroutine[Any, Any, None]) -> None:
    """On the faster loop where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


class StdioService:
    """A conversation over the process's own pipes. `over` is set when the client is gone or we are told to end."""

    def __init__(self, handlers: RequestHandlers, pipes: Pipes, view: "ToolView | None" = None) -> None:
        self.finished = asyncio.Event()
        self._stopped = self._closed = False
        self._pipes = pipes
        self._writer = LineWriter(asyncio.get_running_loop(), self.finished.set)
        self.connection = McpConnection(handlers, self._writer, session=new_id(), view=view)

    async def start(self) -> None:
        """When it returns, what the client had sent before has been heard, and answered if it could be at once."""
        loop, connection, writer = asyncio.get_running_loop(), self.connection, self._writer
        lines = LineReader(connection.receive, lambda: connection.refuse(TOO_LONG), self.finished.set)
        self._sink, _ = await loop.connect_write_pipe(lambda: writer, self._pipes.sink)
        self._source, _ = await loop.connect_read_pipe(lambda: lines, self._pipes.source)
        writer.on_pause, writer.on_resume = self._source.pause_reading, self._resume
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        for _ in range(4):  # turns of the loop: the reading, the answering, the answer, the writing
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Once more does nothing."""
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
    handlers: RequestHandlers, pipes: Pipes, view: "ToolView | None" = None
) -> AsyncIterator[StdioService]:
    """Without a view, `desk` must be one that needs none, or sees to one itself."""
    service = StdioService(handlers, pipes, view)
    await service.start()
    try:
        yield service
    finally:
        await service.close()
