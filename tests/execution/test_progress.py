import asyncio
import threading
from typing import Any

from toolreeve.execution.progress import MAX_CHARACTERS, MAX_PENDING, report_to


class Listener:
    """A peer that only hears. With `deaf` set, it never takes what it is told."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.heard: list[Any] = []
        self.deaf = deaf

    async def progress(self, text: str) -> None:
        self.heard.append(text)
        if self.deaf:
            await asyncio.Event().wait()


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_reports_arrive_in_order_from_any_thread_with_secrets_redacted() -> None:
    peer = Listener()
    report = report_to(peer.progress, lambda text: text.replace("hunter2", "[redacted]"))

    report("one")
    thread = threading.Thread(target=report, args=("two hunter2",))
    thread.start()
    thread.join()
    report("three")
    await settle()

    assert peer.heard == ["one", "two [redacted]", "three"]


async def test_a_long_report_is_cut() -> None:
    peer = Listener()

    report_to(peer.progress, str)("x" * (MAX_CHARACTERS + 1))
    await settle()

    assert [len(word) for word in peer.heard] == [MAX_CHARACTERS]


async def test_reports_to_a_caller_that_takes_none_are_bounded() -> None:
    peer = Listener(deaf=True)
    report = report_to(peer.progress, str)

    for number in range(3 * MAX_PENDING):
        report(str(number))
    await settle()

    assert len(peer.heard) == MAX_PENDING
