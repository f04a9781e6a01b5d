import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.audit import Audit
from toolreeve.record.journal import Journal
from toolreeve.record.pending import ALLOWED, DENIED, EXPIRED, PENDING, USED, PendingRow, PendingStore
from toolreeve.record.store import Store

QUESTION: dict[str, Any] = {
    "call_id": "c1",
    "tool": "write_file",
    "danger": "medium",
    "args": {"path": "a", "token": "hunter2-secret"},
    "session": "s",
    "user": "ann",
    "role": "operator",
    "origin": "mcp",
    "verdict": [1, "default", "because", None],
}
YES: dict[str, Any] = {"granted": True, "by": "Bea", "scope": "once", "note": "", "args": None}
NO = YES | {"granted": False, "note": "not today"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def opened(place: Path, clock: Clock | None = None, **options: Any) -> AsyncIterator[PendingStore]:
    now = clock or Clock()
    store = Store(place / "t.db")
    journal = Journal(store, Redactor(["hunter2-secret"]), now)
    await store.start()
    await journal.start()
    try:
        yield PendingStore(store, now, journal=journal, **options)
    finally:
        await journal.stop()
        await store.close()


async def filed(docket: PendingStore, binding: str = "b", holder: str = "ann") -> PendingRow:
    matter, _ = await docket.file(binding=binding, holder=holder, tool="write_file", question=QUESTION)
    return matter


async def test_what_was_filed_is_still_there_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        matter = await filed(docket)
    async with opened(tmp_path) as docket:
        assert await docket.list() == [matter]
        assert await docket.find(matter.id[:6]) == matter

    assert matter.state == PENDING
    assert matter.question == QUESTION


async def test_the_first_decision_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        matter = await filed(docket)
        decided = await asyncio.gather(*(docket.decide(matter.id, answer) for answer in (NO, YES, YES)))
        found = await docket.find(matter.id)

    assert decided.count(True) == 1
    assert found is not None
    assert found.state in (ALLOWED, DENIED)


async def test_what_is_not_strictly_granted_is_denied(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        matter = await filed(docket)
        await docket.decide(matter.id, YES | {"granted": 1})
        found = await docket.find(matter.id)

    assert found is not None
    assert found.state == DENIED


async def test_an_answer_is_taken_once_and_by_its_holder_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        matter = await filed(docket)
        assert await docket.take(binding="b", holder="ann") is None, "nobody has answered yet"
        await docket.decide(matter.id, YES)

        assert await docket.take(binding="b", holder="eve") is None
        assert await docket.claim(matter.id, holder="eve") is None
        assert await docket.take(binding="other", holder="ann") is None
        taken = await asyncio.gather(*(docket.take(binding="b", holder="ann") for _ in range(5)))
        assert await docket.claim(matter.id, holder="ann") is None
        used = await docket.find(matter.id)

    assert [each.id for each in taken if each is not None] == [matter.id]
    assert used is not None
    assert used.state == USED


TAKER = """
import asyncio, pathlib, sys, time
from toolreeve.record.pending import PendingStore
from toolreeve.record.store import Store

async def main():
    store = Store(pathlib.Path(sys.argv[1]))
    await store.start()
    docket = PendingStore(store, lambda: 1000.0)
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    got = [await docket.claim(number, holder="ann") for number in sys.argv[2:]]
    spent = [await docket.consume("nonce" + number, keep=2000.0) for number in sys.argv[2:]]
    await store.close()
    print(*(int(each is not None) for each in got), *map(int, spent))

asyncio.run(main())
"""


async def test_of_two_processes_that_claim_the_same_answers_at_once_each_is_given_to_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        numbers = [(await filed(docket, binding=f"b{count}")).id for count in range(12)]
        for number in numbers:
            await docket.decide(number, YES)
    pipe = subprocess.PIPE
    takers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", TAKER, str(tmp_path / "t.db"), *numbers, stdin=pipe, stdout=pipe
        )
        for _ in range(2)
    ]
    async with asyncio.timeout(60):
        for taker in takers:
            assert taker.stdout is not None
            await taker.stdout.readline()
        printed = await asyncio.gather(*(taker.communicate(b"go\n") for taker in takers))
    first, second = ([int(word) for word in out.split()] for out, _ in printed)

    assert [one + other for one, other in zip(first, second, strict=True)] == [1] * 24


async def test_whoever_waits_is_told_at_once_in_the_same_process(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        matter = await filed(docket)
        waiting = asyncio.create_task(docket.wait(matter.id, timeout=30))
        await asyncio.sleep(0)
        await docket.decide(matter.id, NO)
        async with asyncio.timeout(10):
            found = await waiting

    assert found is not None
    assert found.answer == NO


async def test_whoever_waits_sees_what_another_process_decides(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        matter = await filed(one)
        waiting = asyncio.create_task(one.wait(matter.id, timeout=30))
        await other.decide(matter.id, YES)
        async with asyncio.timeout(10):
            found = await waiting

    assert found is not None
    assert found.state == ALLOWED


async def test_waiting_ends_with_its_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        matter = await filed(docket)

        assert await docket.wait(matter.id, timeout=0.05) == matter
        assert await docket.wait("none", timeout=5) is None


async def test_neither_a_question_nor_its_answer_outlives_its_time(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, lifetime=60.0) as docket:
        unanswered, granted = await filed(docket, "one"), await filed(docket, "two")
        await docket.decide(granted.id, YES)
        clock.now += 60.0

        assert not await docket.decide(unanswered.id, YES)
        assert await docket.take(binding="two", holder="ann") is None
        assert await docket.claim(granted.id, holder="ann") is None
        assert await docket.list() == []
        assert [matter.state for matter in await docket.list(pending_only=False)] == [EXPIRED, EXPIRED]


async def test_one_caller_cannot_fill_the_docket(tmp_path: Path) -> None:
    async with opened(tmp_path, most=2) as docket:
        await filed(docket, "one")
        await filed(docket, "two")
        await filed(docket, "two")
        with pytest.raises(ToolError) as raised:
            await filed(docket, "three")
        await filed(docket, "three", holder="bob")

    assert raised.value.code is ErrorCode.LIMIT


async def test_a_beginning_that_two_share_finds_neither(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        await filed(docket, "one")
        await filed(docket, "two")

        assert await docket.find("") is None
        assert await docket.find("%") is None


async def test_every_decision_is_in_the_record_without_secrets(tmp_path: Path) -> None:
    async with opened(tmp_path) as docket:
        matter = await filed(docket)
        await docket.decide(matter.id, NO)
        await docket.decide(matter.id, YES)
    store = Store(tmp_path / "t.db", read_only=True)
    await store.start()
    records = await Audit(store).show("c1")
    verified = await Audit(store).verify()
    await store.close()

    (record,) = records
    told = record.to_dict()
    assert (record.kind, told["approval"], told["granted"], told["approved_by"]) == (
        "approval",
        matter.id,
        False,
        "Bea",
    )
    assert told["message"] == "not today"
    assert "hunter2" not in str(told)
    assert verified.ok


async def test_what_is_good_for_one_use_is_used_once(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock) as docket:
        first = await asyncio.gather(*(docket.consume("n", keep=600.0) for _ in range(5)))
        other = await docket.consume("m", keep=600.0)
    async with opened(tmp_path, clock) as docket:
        after_restart = await docket.consume("n", keep=600.0)

    assert first.count(True) == 1
    assert other
    assert not after_restart
