"""Blocking work in threads: answered, interrupted, never mixed up."""

import asyncio
import threading

import pytest

from toolreeve.core.threads import run_interruptibly


async def test_the_value_and_the_exception_come_back() -> None:
    def fail() -> None:
        raise KeyError("missing")

    assert await run_interruptibly(lambda: 41 + 1) == 42
    with pytest.raises(KeyError, match="missing"):
        await run_interruptibly(fail)


async def test_work_that_spins_forever_is_ended_when_its_caller_leaves() -> None:
    ended = threading.Event()

    def spin() -> None:
        try:
            while True:
                pass
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run_interruptibly(spin)

    assert await asyncio.to_thread(ended.wait, 5)


async def test_an_interrupt_never_hits_the_work_of_another() -> None:
    """Work that ends at the very moment of its interrupt must not pass the interrupt on."""

    def short() -> int:
        return sum(range(2000))

    async def race(delay: float) -> None:
        task = asyncio.create_task(run_interruptibly(short))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for round_ in range(200):
        _, value = await asyncio.gather(race(round_ % 7 * 1e-5), run_interruptibly(short))
        assert value == sum(range(2000))


async def test_blocked_work_does_not_delay_other_work() -> None:
    release = threading.Event()
    blocked = [asyncio.create_task(run_interruptibly(release.wait)) for _ in range(40)]

    assert await run_interruptibly(lambda: "through") == "through"

    release.set()
    assert await asyncio.gather(*blocked) == [True] * 40


async def test_work_that_wants_to_end_the_program_ends_only_itself() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit"):
        await run_interruptibly(leave)
