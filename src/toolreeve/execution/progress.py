"""How does a tool's word about its progress reach the one who called it? Handed over to the loop, in order, unawaited.

A tool may report from any thread, and is never held up by a caller that does not listen: what such a one has not taken
yet is bounded, and the rest is lost. Secrets are taken out first.
"""

import asyncio
from collections.abc import Callable

from toolreeve.core.peer import Peer

LONGEST = 4_000
MOST_WAITING = 100


def to_peer(peer: Peer, redact: Callable[[str], str]) -> Callable[[str], None]:
    """To be called in the loop that the peer lives in; what is returned may be called anywhere."""
    loop = asyncio.get_running_loop()
    telling: set[asyncio.Task[None]] = set()

    def tell(text: str) -> None:
        if len(telling) >= MOST_WAITING:
            return
        task = loop.create_task(peer.progress(redact(text)[:LONGEST]))
        telling.add(task)
        task.add_done_callback(telling.discard)

    def report(text: str) -> None:
        loop.call_soon_threadsafe(tell, text)

    return report
