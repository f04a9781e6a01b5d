"""Events kept for a client whose stream broke."""

from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCNotification

from toolreeve.serve.mcp.event_store import SessionEventStore


def message(text: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=text)


async def replayed(events: SessionEventStore, after: str) -> tuple[str | None, list[str]]:
    heard: list[str] = []

    async def hear(event: EventMessage) -> None:
        assert isinstance(event.message, JSONRPCNotification)
        heard.append(event.message.method)

    return await events.replay_events_after(after, hear), heard


async def test_what_came_after_an_event_on_its_stream_is_replayed_in_order() -> None:
    events = SessionEventStore()
    first = await events.store_event("a", None)
    for stream, text in (("a", "one"), ("b", "other"), ("a", "two")):
        await events.store_event(stream, message(text))

    assert await replayed(events, first) == ("a", ["one", "two"])


async def test_an_event_that_is_unknown_or_was_let_go_replays_nothing() -> None:
    events = SessionEventStore(most=2)
    first = await events.store_event("a", None)
    for text in ("one", "two", "three"):
        await events.store_event("a", message(text))

    for after in (first, "99", "-1", "no number", ""):
        assert await replayed(events, after) == (None, [])


async def test_large_messages_are_let_go_before_they_fill_the_memory_and_the_latest_is_kept() -> None:
    events = SessionEventStore(most_bytes=1000)
    ids = [await events.store_event("a", message("x" * 600)) for _ in range(5)]

    assert await replayed(events, ids[3]) == (None, [])
    assert await replayed(events, ids[4]) == ("a", [])
