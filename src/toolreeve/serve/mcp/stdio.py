"""How is MCP served over stdin and stdout? One client for the life of the process, without the SDK, fast to start.

Nothing but protocol reaches stdout. The end of stdin, SIGTERM or a client that is gone end the service, in good order.
"""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

from toolreeve.core.call import LOCAL, Principal, new_id
from toolreeve.serve.mcp.conversation import Answering, Conversation
from toolreeve.serve.mcp.pipes import LONGEST_LINE, Lines, Outlet, Pipes
from toolreeve.serve.mcp.views import View

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


async def serve(desk: Answering, pipes: Pipes, *, view: View, principal: Principal = LOCAL) -> None:
    """Until the client is gone, or we are told to end."""
    loop = asyncio.get_running_loop()
    ended, told = asyncio.Event(), asyncio.Event()
    outlet = Outlet(loop, ended.set)
    conversation = Conversation(desk, outlet, view=view, session=new_id(), principal=principal)
    lines = Lines(conversation.hear, lambda: conversation.refuse(TOO_LONG), ended.set)
    sink, _ = await loop.connect_write_pipe(lambda: outlet, pipes.sink)
    source, _ = await loop.connect_read_pipe(lambda: lines, pipes.source)

    def relieve() -> None:
        source.resume_reading()
        conversation.resume()

    def stop() -> None:
        told.set()
        ended.set()

    outlet.pressed, outlet.relieved = source.pause_reading, relieve
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await ended.wait()
        source.close()
        await conversation.finish(0 if told.is_set() else LAST_ANSWERS)
        await outlet.drain(LAST_WORDS)
    finally:
        source.close()
        sink.close()
