"""Recent events of one session, for clients that resume a broken stream.

Every session has its own store: an event of one client does not exist for another, whatever id it names.
"""

from collections import deque
from dataclasses import dataclass

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage

MOST_EVENTS = 512
MOST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _StoredEvent:
    number: int
    stream: str
    message: JSONRPCMessage | None
    size: int


class SessionEventStore(EventStore):
    def __init__(self, *, most: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: deque[_StoredEvent] = deque()
        self._bytes = 0
        self._last = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._last += 1
        size = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_unset=True))
        self._kept.append(_StoredEvent(self._last, stream_id, message, size))
        self._bytes += size
        while len(self._kept) > self._most or (self._bytes > self._most_bytes and len(self._kept) > 1):
            self._bytes -= self._kept.popleft().size
        return str(self._last)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """None for an event that is unknown or was dropped."""
        stream = next((kept.stream for kept in self._kept if str(kept.number) == last_event_id), None)
        if stream is None:
            return None
        later = [each for each in self._kept if each.number > int(last_event_id)]
        for kept in later:
            if kept.stream == stream and kept.message is not None:
                await send_callback(EventMessage(kept.message, str(kept.number)))
        return stream
