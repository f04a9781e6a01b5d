"""Progress notifications from a running tool to its caller.

A tool may report from any thread and is never held up by a slow caller: reports are sent in order without waiting, and
beyond `MAX_PENDING` unsent ones further reports are dropped. Secrets are redacted first.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

MAX_CHARACTERS = 4_000
MAX_PENDING = 100


def report_to(send: Callable[[str], Coroutine[Any, Any, None]], redact: Callable[[str], str]) -> Callable[[str], None]:
    """Call this in the event loop of `send`; the returned function may be called from any thread."""
    loop = asyncio.get_running_loop()
    pending: set[asyncio.Task[None]] = set()

    def notify(text: str) -> None:
        if len(pending) >= MAX_PENDING:
            return
        task = loop.create_task(send(redact(text)[:MAX_CHARACTERS]))
        pending.add(task)
        task.add_done_callback(pending.discard)

    def report(text: str) -> None:
        loop.call_soon_threadsafe(notify, text)

    return report
