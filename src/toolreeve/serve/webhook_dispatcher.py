"""Webhook dispatcher: turns recorded events into deliveries and sends them.

Events become deliveries together with the cursor of their source, in one transaction: none is lost or doubled when the
process dies. Each endpoint has a worker of its own, so that a slow one delays nobody.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from toolreeve.core import json
from toolreeve.core.errors import ToolError
from toolreeve.core.events import Event
from toolreeve.record.events import event_of
from toolreeve.record.pending_table import PENDING
from toolreeve.record.webhooks import (
    Delivery,
    NewDelivery,
    Webhook,
    WebhookTable,
    priority_of,
    read_retry_after,
    retry_delay,
    sign,
)

if TYPE_CHECKING:
    import httpx2

    from toolreeve.runtime.toolreeve import Toolreeve

POLL_SECONDS = 0.5
TIMEOUT = 30.0
LEASE = 60.0
GONE = 410

_logger = logging.getLogger(__name__)


class WebhookDispatcher:
    """`draw` gives the jitter of back-off, from [0, 1)."""

    def __init__(self, reeve: "Toolreeve", table: WebhookTable, *, draw: Any, poll: float = POLL_SECONDS) -> None:
        self._reeve = reeve
        self._table = table
        self._draw = draw
        self._poll = poll
        self._workers: dict[str, tuple[Webhook, asyncio.Task[None]]] = {}
        self._wake = asyncio.Event()
        self.outcomes: dict[str, int] = {"delivered": 0, "failed": 0, "dead": 0}

    async def run(self) -> None:
        """Until it is cancelled."""
        following = asyncio.create_task(self._follow_approvals())
        try:
            while True:
                with contextlib.suppress(ToolError):  # the store cannot be read or written just now
                    hooks = await self._table.list()
                    self._update_workers(hooks)
                    await self._take_records(hooks)
                await self._pause()
        finally:
            tasks = [following, *(task for _, task in self._workers.values())]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def wake(self) -> None:
        """Webhooks or deliveries have changed."""
        self._wake.set()

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._poll):
                await self._wake.wait()
        self._wake.clear()

    def _update_workers(self, hooks: Sequence[Webhook]) -> None:
        wanted = {hook.id: hook for hook in hooks if hook.enabled}
        for number, (hook, task) in list(self._workers.items()):
            if wanted.get(number) != hook or task.done():
                task.cancel()
                del self._workers[number]
        for number, hook in wanted.items():
            if number not in self._workers:
                self._workers[number] = (hook, asyncio.create_task(self._work(hook)))

    async def _take_records(self, hooks: Sequence[Webhook]) -> None:
        """What happened before the first webhook was added is not delivered."""
        cursor = await self._table.cursor("record")
        if cursor is None or not hooks:
            last = await self._reeve.audit.last()
            if last != cursor:
                await self._table.enqueue("record", before=cursor, after=last, deliveries=(), now=time.time())
            return
        while records := await self._reeve.audit.after(cursor):
            found = [(each, event) for each in records if (event := event_of(each)) is not None]
            rows = [
                row
                for each, event in found
                for row in _deliveries(hooks, f"record-{each.seq}", event, each.body.get("danger"))
            ]
            last = records[-1].seq
            if not await self._table.enqueue("record", before=cursor, after=last, deliveries=rows, now=time.time()):
                return
            cursor = last

    async def _follow_approvals(self) -> None:
        """Questions are no records; their changes have an order of their own."""
        cursor = await self._table.cursor("approvals")
        async with aclosing(self._reeve.approvals.changes(cursor)) as changes:
            async for change in changes:
                rows = await self._approval_rows(change) if change.state == PENDING else ()
                stored = await self._table.cursor("approvals")
                if stored is None or stored < change.changed:
                    await self._table.enqueue(
                        "approvals", before=stored, after=change.changed, deliveries=rows, now=time.time()
                    )
                    self._wake.set()

    async def _approval_rows(self, change: Any) -> list[NewDelivery]:
        card = await self._reeve.approvals.show(change.id, mark=False)
        hooks = await self._table.list()
        if card is None:
            return []
        event = Event(
            event="approval_requested",
            task_id=card["call_id"],
            component="approval",
            data={"id": change.id, "card": card},
            at=card["asked"],
        )
        return _deliveries(hooks, f"approval-{change.changed}", event, card.get("danger"))

    async def _work(self, hook: Webhook) -> None:
        async with self._reeve.internals.http.library_client(timeout=TIMEOUT) as client:
            while True:
                try:
                    async for delivery in self._due(hook):
                        await self._deliver(client, hook, delivery)
                except ToolError:
                    _logger.warning("webhook %s: the store cannot be used just now", hook.id)
                await asyncio.sleep(self._poll)

    async def _due(self, hook: Webhook) -> AsyncIterator[Delivery]:
        while not hook.is_quiet(time.time()):
            delivery = await self._table.claim(hook.id, now=time.time(), lease=LEASE)
            if delivery is None:
                return
            yield delivery

    async def _deliver(self, client: "httpx2.AsyncClient", hook: Webhook, delivery: Delivery) -> None:
        status, problem, retry_after = await self._send(client, hook, delivery)
        now = time.time()
        if status is not None and 200 <= status < 300:
            self.outcomes["delivered"] += 1
            await self._table.delivered(delivery, status=status, now=now)
            return
        delay = retry_delay(hook.retry, delivery.attempts + 1, draw=self._draw(), retry_after=retry_after)
        if status == GONE:
            delay = None
        self.outcomes["failed" if delay is not None else "dead"] += 1
        due = None if delay is None else now + delay
        await self._table.failed(delivery, status=status, problem=problem, due=due, now=now)

    async def _send(
        self, client: "httpx2.AsyncClient", hook: Webhook, delivery: Delivery
    ) -> tuple[int | None, str, float]:
        """Status, problem and the seconds of Retry-After. No redirect is followed: a 3xx is a failure."""
        import httpx2

        headers = new_headers(hook, delivery, time.time())
        try:
            async with client.stream("POST", hook.url, content=delivery.body, headers=headers) as answer:
                problem = "" if answer.is_success else f"HTTP {answer.status_code}"
                return answer.status_code, problem, read_retry_after(answer.headers.get("retry-after", ""), time.time())
        except (httpx2.HTTPError, ToolError, OSError) as failure:
            return None, f"{type(failure).__name__}: {failure}"[:500], 0.0


def new_headers(hook: Webhook, delivery: Delivery, now: float) -> dict[str, str]:
    timestamp = str(int(now))
    signature = sign(hook.secret, timestamp, delivery.event_id, delivery.body)
    return {
        **hook.headers,
        "content-type": "application/json",
        "user-agent": "toolreeve",
        "x-toolreeve-id": delivery.event_id,
        "x-toolreeve-timestamp": timestamp,
        "x-toolreeve-signature": signature,
        "x-a2a-timestamp": timestamp,
        "x-a2a-signature": signature,
    }


def _deliveries(hooks: Sequence[Webhook], number: str, event: Event, danger: Any) -> list[NewDelivery]:
    priority = priority_of(danger)
    wanted = [hook for hook in hooks if hook.wants(event.event, event.task_id, priority)]
    if not wanted:
        return []
    made = datetime.now(UTC).isoformat(timespec="milliseconds")
    body = json.dumps({"id": number, "version": 1, "sent": made, **event.to_dict()})
    return [NewDelivery(hook.id, number, event.task_id, body) for hook in wanted]
