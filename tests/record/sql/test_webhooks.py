"""The outbox of webhooks, shared by several processes: each delivery is leased to one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.record.backends import store_at
from toolreeve.record.webhooks import DeliveryStatistics, NewDelivery, Webhook, WebhookTable

pytestmark = pytest.mark.usefixtures("database")
HOOK = Webhook(id="h", url="https://a.example", secret="s" * 16)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[WebhookTable]:
    store = store_at(path / "t.db")
    await store.start()
    yield store.webhooks
    await store.close()


async def test_of_two_processes_each_delivery_is_claimed_by_one(tmp_path: Path) -> None:
    due = [NewDelivery("h", f"e{number}", "", b"{}") for number in range(20)]
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await one.put(HOOK, now=1.0)
        assert await one.enqueue("calls", before=None, after=20, deliveries=due, now=1.0)

        claimed = await asyncio.gather(*(t.claim("h", now=2.0, lease=30.0) for _ in range(12) for t in (one, other)))
        again = await other.claim("h", now=33.0, lease=30.0)

    events = [delivery.event_id for delivery in claimed if delivery is not None]
    assert sorted(events) == sorted(each.event_id for each in due)
    assert again is not None, "a lease ends"


async def test_events_are_taken_from_a_source_once(tmp_path: Path) -> None:
    due = [NewDelivery("h", "e", "", b"{}")]
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await one.put(HOOK, now=1.0)
        tables = (one, other, one, other)
        taken = await asyncio.gather(
            *(table.enqueue("calls", before=None, after=7, deliveries=due, now=1.0) for table in tables)
        )
        cursor = await other.cursor("calls")
        waiting = await other.deliveries("h", state="pending", limit=10)

    assert (taken.count(True), cursor, len(waiting)) == (1, 7, 1)


async def test_deliveries_of_one_task_go_out_in_order_and_are_counted(tmp_path: Path) -> None:
    due = [NewDelivery("h", "first", "task", b"1"), NewDelivery("h", "second", "task", b"2")]
    async with opened(tmp_path) as table:
        await table.put(HOOK, now=1.0)
        await table.enqueue("calls", before=None, after=2, deliveries=due, now=1.0)
        first = await table.claim("h", now=1.0, lease=5.0)
        assert first is not None
        blocked = await table.claim("h", now=1.0, lease=5.0)
        await table.failed(first, status=500, problem="x", due=2.0, now=1.5)
        again = await table.claim("h", now=2.0, lease=5.0)
        assert again is not None
        await table.delivered(again, status=200, now=2.5)
        second = await table.claim("h", now=3.0, lease=5.0)
        assert second is not None
        await table.failed(second, status=None, problem="gone", due=None, now=3.5)
        replayed = await table.replay("h", number=None, now=4.0)
        statistics = await table.statistics()
        gone = await table.delete("h")

    assert (first.event_id, blocked, again.attempts, second.event_id) == ("first", None, 1, "second")
    assert statistics == {
        "h": DeliveryStatistics(delivered=1, failed=2, pending=1, dead=0, last_status=None, last_at=3.5)
    }
    assert (replayed, gone) == (1, True)
