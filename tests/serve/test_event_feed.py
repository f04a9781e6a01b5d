"""The event feed: what many listeners share, and what one that lags gets."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.world import World
from toolreeve import Toolreeve
from toolreeve.serve.event_feed import EventFeed, EventPage

CALLS = 20


@asynccontextmanager
async def feeding(world: World, *, ring: int = 5_000) -> AsyncIterator[tuple[Toolreeve, EventFeed]]:
    async with world.reeve() as reeve:
        feed = EventFeed(reeve.audit, reeve.bus, reeve.approvals, ring=ring)
        running = asyncio.create_task(feed.run())
        try:
            yield reeve, feed
        finally:
            running.cancel()
            await asyncio.wait({running})


async def read(feed: EventFeed, ready: asyncio.Semaphore, after: int | None = None) -> Sequence[EventPage]:
    """The pages until all calls have ended."""
    pages: list[EventPage] = []
    stream = feed.listen(after)
    following = asyncio.ensure_future(anext(stream))
    ready.release()
    while len(ended(pages)) < CALLS:
        pages.append(await following)
        following = asyncio.ensure_future(anext(stream))
    following.cancel()
    await asyncio.wait({following})
    return pages


def ended(pages: Sequence[EventPage]) -> list[int]:
    return [fed.seq for page in pages for fed in page.events if fed.seq is not None]


async def test_listeners_at_the_same_place_share_what_is_made_of_the_events(world: World) -> None:
    async with feeding(world) as (reeve, feed):
        ready = asyncio.Semaphore(0)
        listeners = [asyncio.create_task(read(feed, ready)) for _ in range(50)]
        for _ in listeners:
            await ready.acquire()
        while feed.listeners < len(listeners):  # noqa: ASYNC110
            await asyncio.sleep(0)
        for number in range(CALLS):
            await reeve.call("calculate", expression=str(number))
        found = await asyncio.gather(*listeners)

    seqs = ended(found[0])
    assert len(seqs) == CALLS
    assert all(ended(pages) == seqs for pages in found)
    assert len({id(page) for pages in found for page in pages}) < sum(map(len, found)) / 10


async def test_a_listener_that_lags_behind_the_ring_reads_the_rest_from_the_record(world: World) -> None:
    async with feeding(world, ring=4) as (reeve, feed):
        stream = feed.listen()
        first = asyncio.ensure_future(anext(stream))
        while not feed.listeners:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await reeve.call("calculate", expression="0")
        pages = [await first]
        for number in range(1, CALLS):
            await reeve.call("calculate", expression=str(number))
        while len(ended(pages)) < CALLS:
            pages.append(await anext(stream))

    assert ended(pages) == sorted(set(ended(pages)))
