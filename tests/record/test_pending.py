import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.record.backends import store_at, url_of
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.audit import Audit
from toolreeve.record.journal import Journal
from toolreeve.record.pending import PendingStore
from toolreeve.record.pending_table import ALLOWED, DENIED, EXPIRED, PENDING, USED, PendingRow

pytestmark = pytest.mark.usefixtures("database")

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
    store = store_at(place / "t.db")
    journal = Journal(store, Redactor(["hunter2-secret"]), now)
    await store.start()
    await journal.start()
    try:
        yield PendingStore(store.pending, now, **options)
    finally:
        await journal.stop()
        await store.close()


async def filed(pending: PendingStore, binding: str = "b", holder: str = "ann") -> PendingRow:
    row, _ = await pending.file(binding=binding, holder=holder, tool="write_file", question=QUESTION)
    return row


async def test_what_was_filed_is_still_there_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        row = await filed(pending)
    async with opened(tmp_path) as pending:
        assert await pending.list() == [row]
        assert await pending.find(row.id[:6]) == row

    assert row.state == PENDING
    assert row.question == QUESTION


async def test_the_first_decision_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        row = await filed(pending)
        decided = await asyncio.gather(*(pending.decide(row.id, answer) for answer in (NO, YES, YES)))
        found = await pending.find(row.id)

    assert decided.count(True) == 1
    assert found is not None
    assert found.state in (ALLOWED, DENIED)


async def test_what_is_not_strictly_granted_is_denied(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        row = await filed(pending)
        await pending.decide(row.id, YES | {"granted": 1})
        found = await pending.find(row.id)

    assert found is not None
    assert found.state == DENIED


async def test_an_answer_is_taken_once_and_by_its_holder_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        row = await filed(pending)
        assert await pending.take(binding="b", holder="ann") is None, "nobody has answered yet"
        await pending.decide(row.id, YES)

        assert await pending.take(binding="b", holder="eve") is None
        assert await pending.claim(row.id, holder="eve") is None
        assert await pending.take(binding="other", holder="ann") is None
        taken = await asyncio.gather(*(pending.take(binding="b", holder="ann") for _ in range(5)))
        assert await pending.claim(row.id, holder="ann") is None
        used = await pending.find(row.id)

    assert [each.id for each in taken if each is not None] == [row.id]
    assert used is not None
    assert used.state == USED


TAKER = """
import asyncio, pathlib, sys, time
from toolreeve.record.pending import PendingStore
from toolreeve.record.store import open_store

async def main():
    store = open_store(pathlib.Path(sys.argv[1]), sys.argv[2])
    await store.start()
    pending = PendingStore(store.pending, lambda: 1000.0)
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    got = [await pending.claim(number, holder="ann") for number in sys.argv[3:]]
    spent = [await pending.consume("nonce" + number, keep=2000.0) for number in sys.argv[3:]]
    await store.close()
    print(*(int(each is not None) for each in got), *map(int, spent))

asyncio.run(main())
"""


async def test_of_two_processes_that_claim_the_same_answers_at_once_each_is_given_to_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        numbers = [(await filed(pending, binding=f"b{count}")).id for count in range(12)]
        for number in numbers:
            await pending.decide(number, YES)
    pipe = subprocess.PIPE
    takers = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            TAKER,
            str(tmp_path / "t.db"),
            url_of(tmp_path / "t.db"),
            *numbers,
            stdin=pipe,
            stdout=pipe,
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


async def test_a_waiting_caller_sees_a_decision_of_this_process_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        row = await filed(pending)
        waiting = asyncio.create_task(pending.wait(row.id, timeout=30))
        await asyncio.sleep(0)
        await pending.decide(row.id, NO)
        async with asyncio.timeout(10):
            found = await waiting

    assert found is not None
    assert found.answer == NO | {"at": 1000.0}


async def test_a_waiting_caller_sees_a_decision_of_another_process(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        row = await filed(one)
        waiting = asyncio.create_task(one.wait(row.id, timeout=30))
        await other.decide(row.id, YES)
        async with asyncio.timeout(10):
            found = await waiting

    assert found is not None
    assert found.state == ALLOWED


async def test_waiting_ends_with_its_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        row = await filed(pending)

        assert await pending.wait(row.id, timeout=0.05) == row
        assert await pending.wait("none", timeout=5) is None


async def test_neither_a_question_nor_its_answer_outlives_its_lifetime(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, lifetime=60.0) as pending:
        unanswered, granted = await filed(pending, "one"), await filed(pending, "two")
        await pending.decide(granted.id, YES)
        clock.now += 60.0

        assert not await pending.decide(unanswered.id, YES)
        assert await pending.take(binding="two", holder="ann") is None
        assert await pending.claim(granted.id, holder="ann") is None
        assert await pending.list() == []
        assert [row.state for row in await pending.list(pending_only=False)] == [EXPIRED, EXPIRED]


async def test_one_holder_cannot_fill_the_queue(tmp_path: Path) -> None:
    async with opened(tmp_path, most=2) as pending:
        await filed(pending, "one")
        await filed(pending, "two")
        await filed(pending, "two")
        with pytest.raises(ToolError) as raised:
            await filed(pending, "three")
        await filed(pending, "three", holder="bob")

    assert raised.value.code is ErrorCode.LIMIT


async def test_an_ambiguous_prefix_finds_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        await filed(pending, "one")
        await filed(pending, "two")

        assert await pending.find("") is None
        assert await pending.find("%") is None


async def test_every_decision_is_in_the_record_without_secrets(tmp_path: Path) -> None:
    async with opened(tmp_path) as pending:
        row = await filed(pending)
        await pending.decide(row.id, NO)
        await pending.decide(row.id, YES)
    store = store_at(tmp_path / "t.db", read_only=True)
    await store.start()
    records = await Audit(store).show("c1")
    verified = await Audit(store).verify()
    await store.close()

    record, late = records
    told = record.to_dict()
    assert (record.kind, told["approval"], told["granted"], told["approved_by"]) == (
        "approval",
        row.id,
        False,
        "Bea",
    )
    assert told["message"] == "not today"
    assert "hunter2" not in str(told)
    assert (late.to_dict()["refused"], late.to_dict()["granted"]) == ("too late", None)
    assert verified.ok


async def test_a_nonce_is_used_once(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock) as pending:
        first = await asyncio.gather(*(pending.consume("n", keep=600.0) for _ in range(5)))
        other = await pending.consume("m", keep=600.0)
    async with opened(tmp_path, clock) as pending:
        after_restart = await pending.consume("n", keep=600.0)

    assert first.count(True) == 1
    assert other
    assert not after_restart
