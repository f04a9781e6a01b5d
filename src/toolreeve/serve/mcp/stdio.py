"""How is MCP served over stdin and stdout? One client for the life of the process, without the SDK, fast to start.

Nothing but protocol reaches stdout. The end of stdin, SIGTERM or a client that is gone end the service, in good order.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from toolreeve.core.call import new_id
from toolreeve.serve.mcp.connection import Answering, McpConnection
from toolreeve.serve.mcp.pipes import LONGEST_LINE, Lines, Outlet, Pipes

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView

LAST_ANSWERS = 1.0
"""How many seconds requests get to be answered after the last one has come."""
LAST_WORDS = 2.0
TOO_LONG = f"Invalid Request: a message may have {LONGEST_LINE} bytes at most"


def run(main: Coroutine[Any, Any, None]) -> None:
    """On the faster loop where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


class Service:
    """A conversation over the process's own pipes. `over` is set when the client is gone or we are told to end."""

    def __init__(self, desk: Answering, pipes: Pipes, view: "ToolView | None" = None) -> None:
        self.over = asyncio.Event()
        self._told = self._ended = False
        self._pipes = pipes
        self._outlet = Outlet(asyncio.get_running_loop(), self.over.set)
        self.conversation = McpConnection(desk, self._outlet, session=new_id(), view=view)

    async def begin(self) -> None:
        """When it returns, what the client had sent before has been heard, and answered if it could be at once."""
        loop, conversation, outlet = asyncio.get_running_loop(), self.conversation, self._outlet
        lines = Lines(conversation.hear, lambda: conversation.refuse(TOO_LONG), self.over.set)
        self._sink, _ = await loop.connect_write_pipe(lambda: outlet, self._pipes.sink)
        self._source, _ = await loop.connect_read_pipe(lambda: lines, self._pipes.source)
        outlet.pressed, outlet.relieved = self._source.pause_reading, self._relieve
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        for _ in range(4):  # turns of the loop: the reading, the answering, the answer, the writing
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Once more does nothing."""
        if self._ended:
            return
        self._ended = True
        self._source.close()
        await self.conversation.finish(0 if self._told else LAST_ANSWERS)
        await self._outlet.drain(LAST_WORDS)
        self._sink.close()

    def _relieve(self) -> None:
        self._source.resume_reading()
        self.conversation.resume()

    def _stop(self) -> None:
        self._told = True
        self.over.set()


@asynccontextmanager
async def serving(desk: Answering, pipes: Pipes, view: "ToolView | None" = None) -> AsyncIterator[Service]:
    """Without a view, `desk` must be one that needs none, or sees to one itself."""
    service = Service(desk, pipes, view)
    await service.begin()
    try:
        yield service
    finally:
        await service.end()
