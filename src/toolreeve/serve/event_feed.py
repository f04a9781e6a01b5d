"""Event feed: what happens in all processes, for any number of listeners.

Durable events come from the record, numbered by it, so that no listener that reads loses one, however slow: what has
left the ring is read from the store again. Transient events (progress, server states, starts of read-only calls) come
from this process alone and are in the ring only. Memory is the ring, not the listeners.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from toolreeve.core.errors import ToolError
from toolreeve.core.events import Event
from toolreeve.record.audit import Audit, AuditRecord
from toolreeve.record.events import event_of
from toolreeve.record.pending_table import ANSWERED, PENDING

if TYPE_CHECKING:
    from toolreeve.record.bus import Bus
    from toolreeve.runtime.approvals import ApprovalChange, Approvals

RING = 5_000
BUSY_SECONDS = 0.05
IDLE_SECONDS = 0.5
PAGE = 500
LISTENER_SECONDS = 0.0005
"""Pause between two wake-ups, for each listener: with many of them, events are sent in batches."""
LONGEST_PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class FedEvent:
    """`seq` is the number of its record; None for a transient event. `record` is for events that have one. `encoded`
    is what listeners have made of it, for the others: by whether they may see what it is about."""

    position: int
    event: Event
    seq: int | None = None
    record: AuditRecord | None = None
    encoded: dict[bool, bytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events that are sent together. Listeners at the same place share it, and in `encoded` what is sent of it."""

    events: Sequence[FedEvent]
    encoded: dict[Hashable, bytes] = field(default_factory=dict, compare=False, repr=False)

    def after(self, seq: int) -> "EventPage":
        """Without what is up to `seq` in the record."""
        fresh = [fed for fed in self.events if fed.seq is None or fed.seq > seq]
        return self if len(fresh) == len(self.events) else EventPage(fresh)

    @property
    def last_seq(self) -> int:
        return max((fed.seq or 0 for fed in self.events), default=0)


class EventFeed:
    """Reads the record only while it has listeners. `run` must run meanwhile."""

    def __init__(self, audit: Audit, bus: "Bus", approvals: "Approvals", *, ring: int = RING) -> None:
        self._audit = audit
        self._approvals = approvals
        self._bus = bus
        self._ring: deque[FedEvent] = deque(maxlen=ring)
        self._next = 0
        self._last_seq = 0
        self._started_ids: deque[str] = deque(maxlen=1000)
        self._page = EventPage(())
        self._page_range = (0, 0)
        self._changed = asyncio.Event()
        self._wake_up: asyncio.TimerHandle | None = None
        self._woken = 0.0
        self._wanted = asyncio.Event()
        self._listeners = 0
        self._closed = False
        self._now = time.time

    @property
    def listeners(self) -> int:
        return self._listeners

    async def run(self) -> None:
        """Follow the record and the bus until it is cancelled."""
        self._last_seq = await self._audit.last()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._notify)

        self._audit.watch(wake)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_bus())
            tasks.create_task(self._follow_record())
            tasks.create_task(self._follow_approvals())

    def close(self) -> None:
        """End all listeners."""
        self._closed = True
        self._wake()

    async def listen(self, after: int | None = None) -> AsyncIterator[EventPage]:
        """The events from now on, or those after the record `after` first, as many at once as there are. Ends when the
        feed closes."""
        self._listeners += 1
        self._wanted.set()
        try:
            await self._catch_up_with_record()
            position = self._next
            seq = self._last_seq
            if after is not None and after < seq:
                async for page in self._stored(after, seq):
                    yield page
            async for page in self._live(position, seq):
                yield page
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._wanted.clear()

    async def _live(self, position: int, seq: int) -> AsyncIterator[EventPage]:
        while not self._closed:
            changed = self._changed
            page = self._since(position)
            if page.events:
                first = page.events[0]
                if first.position > position:  # the listener was too slow: read on from the store
                    async for stored in self._stored(seq, self._seq_before(first)):
                        seq = max(seq, stored.last_seq)
                        yield stored
                fresh = page.after(seq)
                seq = max(seq, fresh.last_seq)
                position = page.events[-1].position + 1
                if fresh.events:
                    yield fresh
            if position == self._next and not self._closed:
                await changed.wait()

    def _since(self, position: int) -> EventPage:
        """The next events from there; the same page for all listeners at the same place."""
        if self._page_range != (position, self._next):
            self._page_range = (position, self._next)
            start = max(len(self._ring) - (self._next - position), 0)
            self._page = EventPage(list(islice(self._ring, start, start + PAGE)))
        return self._page

    def _seq_before(self, fed: FedEvent) -> int:
        """The last record before this place in the ring."""
        if fed.seq is not None:
            return fed.seq - 1
        return next((each.seq - 1 for each in self._ring if each.position > fed.position and each.seq), self._last_seq)

    async def _stored(self, after: int, until: int) -> AsyncIterator[EventPage]:
        while after < until and (chunk := await self._audit.after(after)):
            after = chunk[-1].seq
            told = [(record, event_of(record)) for record in chunk if record.seq <= until]
            if found := [FedEvent(-1, event, record.seq, record) for record, event in told if event is not None]:
                yield EventPage(found)

    async def _follow_bus(self) -> None:
        """Only while somebody listens: without subscribers, calls make no events."""
        while True:
            await self._wanted.wait()
            async with self._bus.subscribe() as events:
                async for event in events:
                    if self._is_transient(event):
                        self._add(event)
                    if not self._listeners:
                        break
            if events.ended and self._listeners:
                return  # the bus has closed

    def _is_transient(self, event: Event) -> bool:
        """Whether the record will not tell of it."""
        if event.event == "tool_execution":
            return event.data.get("status") == "started"
        return event.event != "record_gap" and not event.event.startswith("approval_")

    async def _follow_approvals(self) -> None:
        """Questions of all processes. Answers are on record, which is looked at at once."""
        while True:
            await self._wanted.wait()
            async with aclosing(self._approvals.changes()) as changes:
                async for change in changes:
                    if change.state in ANSWERED or change.state == "used":
                        self._notify()
                    else:
                        self._add(await self._approval_event(change))
                    if not self._listeners:
                        break

    async def _approval_event(self, change: "ApprovalChange") -> Event:
        kind = "approval_requested" if change.state == PENDING else "approval_withdrawn"
        card = await self._approvals.show(change.id, mark=False) if change.state == PENDING else None
        summary = change.summary
        data = {"id": change.id, "state": change.state, "user": summary.get("user"), "card": card or dict(summary)}
        at = summary.get("asked") if change.state == PENDING else None
        task = str((card or {}).get("call_id", ""))
        return Event(event=kind, task_id=task, component="approval", data=data, at=at or self._now())

    async def _follow_record(self) -> None:
        pause = IDLE_SECONDS
        while True:
            if not self._listeners:
                await self._wanted.wait()
            found = 0
            with contextlib.suppress(ToolError):  # the store cannot be read just now
                found = await self._catch_up_with_record()
            pause = BUSY_SECONDS if found else min(pause * 1.5, IDLE_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()
                    await asyncio.sleep(BUSY_SECONDS)

    async def _catch_up_with_record(self) -> int:
        count = 0
        while chunk := await self._audit.after(self._last_seq):
            for record in chunk:
                if record.seq <= self._last_seq:
                    continue  # another task was faster
                self._last_seq = record.seq
                count += 1
                if (event := event_of(record)) is not None:
                    self._add(event, record)
        return count

    def _add(self, event: Event, record: AuditRecord | None = None) -> None:
        if event.data.get("status") == "started":
            if event.task_id in self._started_ids:
                return
            self._started_ids.append(event.task_id)
        seq = None if record is None else record.seq
        self._ring.append(FedEvent(self._next, event, seq, record))
        self._next += 1
        self._notify()

    def _notify(self) -> None:
        if self._wake_up is None:
            loop = asyncio.get_running_loop()
            pause = min(self._listeners * LISTENER_SECONDS, LONGEST_PAUSE)
            self._wake_up = loop.call_at(self._woken + pause, self._wake)

    def _wake(self) -> None:
        self._wake_up = None
        self._woken = asyncio.get_running_loop().time()
        self._changed.set()
        self._changed = asyncio.Event()


def without_arguments(event: Event) -> Event:
    """For those who may not see what a call was about."""
    hidden = ("parameters", "args", "question", "card", "text", "edited", "message", "error", "preview", "difference")
    kept: dict[str, Any] = {key: value for key, value in event.data.items() if key not in hidden}
    error = event.data.get("error")
    if isinstance(error, dict):
        kept["error"] = {"code": error.get("code"), "message": ""}
    return replace(event, data={**kept, "hidden": True})
