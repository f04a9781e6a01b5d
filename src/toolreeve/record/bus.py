"""Event bus: delivers events to subscribers, each at its own pace.

`emit` never waits and never raises. Every subscriber has its own bounded queue: a slow one loses its oldest events and
receives a count of them; calls and other subscribers are not affected.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from toolreeve.core.events import Event

logger = logging.getLogger(__name__)

QUEUE = 1_000
DRAIN_SECONDS = 1.0
DROPPED = "events_dropped"

Listener = Callable[[Event], Awaitable[None] | None]


class Subscription:
    """The events of one listener, as an async iterator that ends when the bus closes."""

    def __init__(self, size: int) -> None:
        self._events: deque[Event] = deque(maxlen=size)
        self._size = size
        self._dropped = 0
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._waking = False
        self.ended = False

    def offer(self, event: Event) -> None:
        """Called from any thread."""
        if len(self._events) == self._size:
            self._dropped += 1
        self._events.append(event)
        self._wake()

    def end(self) -> None:
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waking:
            return
        self._waking = True
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:
            self.ended = True  # its loop has closed: no reader is left

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self.ended:
                raise StopAsyncIteration
            await self._ready.wait()
            self._ready.clear()
            self._waking = False
        if self._dropped:
            return self._report_dropped()
        return self._events.popleft()

    def _report_dropped(self) -> Event:
        count = self._dropped
        self._dropped = 0
        at = self._events[0].at
        return Event(event=DROPPED, task_id="", component="bus", data={"count": count}, at=at)


class Bus:
    """`listened` is False while there are no subscribers, so that events need not be created. `queue` is how many
    events a subscriber may lag behind, `drain_seconds` the time that `close` gives them to catch up."""

    def __init__(self, *, queue: int = QUEUE, drain_seconds: float = DRAIN_SECONDS) -> None:
        self.listened = False
        self._queue = queue
        self._drain_seconds = drain_seconds
        self._subscriptions: tuple[Subscription, ...] = ()
        self._tasks: dict[asyncio.Task[None], Subscription] = {}

    def emit(self, event: Event) -> None:
        for subscription in self._subscriptions:
            subscription.offer(event)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[Subscription]:
        """`async with bus.subscribe() as events: async for event in events: ...`"""
        subscription = self._add()
        try:
            yield subscription
        finally:
            self._remove(subscription)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on; call the returned function to stop.

        A coroutine function runs on this event loop, any other function in a thread.
        """
        subscription = self._add()
        task = asyncio.get_running_loop().create_task(_serve(listener, subscription))
        self._tasks[task] = subscription
        task.add_done_callback(self._forget)
        return subscription.end

    async def close(self) -> None:
        """Give listeners `drain_seconds` to take the events so far; then stop them."""
        for subscription in self._subscriptions:
            subscription.end()
        tasks = set(self._tasks)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._drain_seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _add(self) -> Subscription:
        subscription = Subscription(self._queue)
        self._subscriptions = (*self._subscriptions, subscription)
        self.listened = True
        return subscription

    def _remove(self, gone: Subscription) -> None:
        gone.end()
        self._subscriptions = tuple(each for each in self._subscriptions if each is not gone)
        self.listened = bool(self._subscriptions)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._remove(self._tasks.pop(task))


async def _serve(listener: Listener, events: Subscription) -> None:
    logged = False
    async for event in events:
        try:
            if inspect.iscoroutinefunction(listener):
                await listener(event)
            else:
                await asyncio.to_thread(listener, event)
        except Exception:
            if not logged:
                logger.exception("the event listener %r failed; its further failures are not logged", listener)
            logged = True
