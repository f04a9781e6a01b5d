"""A call's time runs, stands still, and passes once."""

import asyncio

import pytest

from toolreeve.core.deadline import SPARE, Alarms, Deadline, thought


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


async def test_time_stands_still_until_everybody_who_holds_it_lets_go() -> None:
    deadline = Deadline(0.01, 1.0)
    deadline.hold()
    deadline.hold()
    deadline.go_on()

    assert not await passing(deadline, 0.05)

    deadline.go_on()
    assert await passing(deadline, 5.0)


async def test_what_is_over_does_not_begin_again_when_a_question_ends() -> None:
    deadline = Deadline(0.01, 1.0)
    over = asyncio.Event()
    deadline.start(over.set)
    deadline.hold()
    deadline.stop()
    deadline.go_on()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(over.wait(), 0.05)
    assert not deadline.has_passed


async def test_who_does_not_answer_once_is_not_waited_for_again() -> None:
    deadline = Deadline(0.1, 0.01)
    over = asyncio.Event()
    deadline.start(over.set)

    with pytest.raises(TimeoutError):
        await thought(never(), [deadline])
    deadline.patience = 60.0
    again = asyncio.ensure_future(thought(never(), [deadline]))

    await asyncio.wait_for(over.wait(), 5.0)
    again.cancel()


async def test_an_answer_is_what_was_answered() -> None:
    async def yes() -> str:
        return "yes"

    assert await thought(yes(), []) == "yes"
    assert await thought(yes(), [Deadline(1.0, 1.0)]) == "yes"


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


async def test_what_is_over_takes_no_room() -> None:
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
