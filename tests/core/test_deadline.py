"""A deadline runs, pauses, and expires once."""

import asyncio

import pytest

from toolreeve.core.deadline import SPARE, Alarms, Deadline, await_answer


async def passing(deadline: Deadline, within: float) -> bool:
    over = asyncio.Event()
    deadline.start(over.set)
    try:
        await asyncio.wait_for(over.wait(), within)
    except TimeoutError:
        return False
    return True


async def never() -> str:
    await asyncio.Event().wait()
    return "never"


async def test_time_passes() -> None:
    deadline = Deadline(0.01, 1.0)

    assert await passing(deadline, 5.0)
    assert deadline.has_passed


async def test_time_stops_until_every_pause_is_resumed() -> None:
    deadline = Deadline(0.01, 1.0)
    deadline.pause()
    deadline.pause()
    deadline.resume()

    assert not await passing(deadline, 0.05)

    deadline.resume()
    assert await passing(deadline, 5.0)


async def test_a_stopped_deadline_does_not_restart_when_a_question_ends() -> None:
    deadline = Deadline(0.01, 1.0)
    over = asyncio.Event()
    deadline.start(over.set)
    deadline.pause()
    deadline.stop()
    deadline.resume()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(over.wait(), 0.05)
    assert not deadline.has_passed


async def test_after_one_unanswered_question_later_ones_do_not_pause() -> None:
    deadline = Deadline(0.1, 0.01)
    over = asyncio.Event()
    deadline.start(over.set)

    with pytest.raises(TimeoutError):
        await await_answer(never(), [deadline])
    deadline.patience = 60.0
    again = asyncio.ensure_future(await_answer(never(), [deadline]))

    await asyncio.wait_for(over.wait(), 5.0)
    again.cancel()


async def test_the_answer_is_returned() -> None:
    async def yes() -> str:
        return "yes"

    assert await await_answer(yes(), []) == "yes"
    assert await await_answer(yes(), [Deadline(1.0, 1.0)]) == "yes"


async def test_many_deadlines_share_one_timer_and_each_passes_in_its_time() -> None:
    alarms, passed = Alarms(), list[float]()
    over = asyncio.Event()
    deadlines = {seconds: Deadline(seconds, 1.0, alarms) for seconds in (0.06, 0.02, 0.04, 0.2)}
    for seconds, deadline in deadlines.items():
        deadline.start(lambda seconds=seconds: passed.append(seconds))  # type: ignore[misc]
    deadlines[0.04].stop()
    last = Deadline(0.08, 1.0, alarms)
    last.start(over.set)

    await asyncio.wait_for(over.wait(), 5.0)

    assert passed == [0.02, 0.06]
    assert alarms.live == 1
    alarms.close()


async def test_a_deadline_may_be_set_by_one_that_passes() -> None:
    alarms, over = Alarms(), asyncio.Event()
    second = Deadline(0.01, 1.0, alarms)
    Deadline(0.01, 1.0, alarms).start(lambda: second.start(over.set))

    await asyncio.wait_for(over.wait(), 5.0)


async def test_ended_deadlines_take_no_memory() -> None:
    alarms = Alarms()
    kept = Deadline(1000.0, 1.0, alarms)
    kept.start(list)
    for _ in range(10 * SPARE):
        done = Deadline(1000.0, 1.0, alarms)
        done.start(list)
        done.stop()

    assert alarms.live == 1
    assert len(alarms._heap) <= SPARE + 3
    alarms.close()
