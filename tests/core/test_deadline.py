"""A call's time runs, stands still, and passes once."""

import asyncio

import pytest

from toolreeve.core.deadline import Deadline, thought


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
