import asyncio
import logging
import threading
from collections.abc import AsyncIterator

import pytest

from toolreeve.core.events import Event
from toolreeve.record.bus import Bus


@pytest.fixture
async def bus() -> AsyncIterator[Bus]:
    bus = Bus(queue=10)
    yield bus
    await bus.close()


def event(number: int) -> Event:
    return Event(event="tool_execution", task_id=str(number), component="test", data={}, at=float(number))


async def test_a_subscriber_receives_events_in_order(bus: Bus) -> None:
    async with bus.subscribe() as events:
        for number in range(5):
            bus.emit(event(number))

        heard = [(await anext(events)).task_id for _ in range(5)]

    assert heard == ["0", "1", "2", "3", "4"]


async def test_events_before_the_subscription_are_not_delivered(bus: Bus) -> None:
    bus.emit(event(1))

    async with bus.subscribe() as events:
        bus.emit(event(2))
        assert (await anext(events)).task_id == "2"


async def test_the_bus_knows_whether_it_has_subscribers(bus: Bus) -> None:
    listened = [bus.listened]
    async with bus.subscribe():
        listened.append(bus.listened)
    listened.append(bus.listened)

    assert listened == [False, True, False]


async def test_a_slow_listener_loses_the_oldest_events_and_receives_their_count(bus: Bus) -> None:
    async with bus.subscribe() as slow:
        for number in range(25):
            bus.emit(event(number))

        first = await anext(slow)
        rest = [(await anext(slow)).task_id for _ in range(10)]

    assert (first.event, first.data) == ("events_dropped", {"count": 15})
    assert rest == [str(number) for number in range(15, 25)]


async def test_a_listener_that_never_returns_delays_no_other(bus: Bus) -> None:
    stuck, heard = asyncio.Event(), asyncio.Queue[str]()

    async def hang(_: Event) -> None:
        await stuck.wait()

    async def listen(event: Event) -> None:
        await heard.put(event.task_id)

    bus.listen(hang)
    bus.listen(listen)
    for number in range(8):
        bus.emit(event(number))

    assert [await asyncio.wait_for(heard.get(), 10) for _ in range(8)] == [str(number) for number in range(8)]
    stuck.set()


async def test_a_plain_function_that_blocks_does_not_block_the_loop(bus: Bus) -> None:
    free, heard = threading.Event(), asyncio.Queue[str]()
    loop = asyncio.get_running_loop()

    def block(event: Event) -> None:
        free.wait(10)
        loop.call_soon_threadsafe(heard.put_nowait, event.task_id)

    bus.listen(block)
    bus.emit(event(1))
    await asyncio.sleep(0)
    free.set()

    assert await asyncio.wait_for(heard.get(), 10) == "1"


async def test_a_listener_that_fails_is_logged_once_and_called_again(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    heard = asyncio.Queue[str]()

    async def fail(event: Event) -> None:
        heard.put_nowait(event.task_id)
        raise ZeroDivisionError

    bus.listen(fail)
    with caplog.at_level(logging.ERROR):
        for number in range(3):
            bus.emit(event(number))
        got = [await asyncio.wait_for(heard.get(), 10) for _ in range(3)]
        await bus.close()

    assert got == ["0", "1", "2"]
    assert len(caplog.records) == 1


async def test_a_listener_can_stop_listening(bus: Bus) -> None:
    heard = asyncio.Queue[str]()

    async def listen(event: Event) -> None:
        await heard.put(event.task_id)

    stop = bus.listen(listen)
    bus.emit(event(1))
    await asyncio.wait_for(heard.get(), 10)
    stop()
    await bus.close()
    bus.emit(event(2))

    assert heard.empty()
    assert not bus.listened


async def test_closing_delivers_events_emitted_before(bus: Bus) -> None:
    heard: list[str] = []

    async def listen(event: Event) -> None:
        await asyncio.sleep(0)
        heard.append(event.task_id)

    bus.listen(listen)
    for number in range(5):
        bus.emit(event(number))
    await bus.close()

    assert heard == ["0", "1", "2", "3", "4"]


async def test_closing_does_not_wait_for_one_that_hangs() -> None:
    bus = Bus(drain_seconds=0.01)

    async def hang(_: Event) -> None:
        await asyncio.Event().wait()

    bus.listen(hang)
    bus.emit(event(1))
    await asyncio.wait_for(bus.close(), 10)

    assert not bus.listened


async def test_a_stream_ends_when_the_bus_closes(bus: Bus) -> None:
    async with bus.subscribe() as events:
        bus.emit(event(1))
        await bus.close()

        heard = [event.task_id async for event in events]

    assert heard == ["1"]


async def test_events_from_other_threads_arrive(bus: Bus) -> None:
    def emit() -> None:
        for number in range(5):
            bus.emit(event(number))

    async with bus.subscribe() as events:
        thread = threading.Thread(target=emit)
        thread.start()
        heard = [(await asyncio.wait_for(anext(events), 10)).task_id for _ in range(5)]
        thread.join()

    assert heard == ["0", "1", "2", "3", "4"]


def test_a_subscriber_whose_loop_has_gone_affects_no_one_else() -> None:
    bus = Bus(queue=3)

    async def subscribe() -> None:
        await bus.subscribe().__aenter__()

    asyncio.run(subscribe())

    for number in range(10):
        bus.emit(event(number))
