import asyncio
import multiprocessing
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.record.entries import entry, opened
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.sql.connection import SqlConnection
from toolreeve.record.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "record.db")
    await store.start()
    yield store
    await store.close()


class Scribe:
    """A log that writes its lines, which are texts, into the budget table; it can be made to fail."""

    unsynced = False

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.problem: Exception | None = None
        self.afterwards: Exception | None = None
        self.written = threading.Event()

    def write(self, chain: Any, lines: Sequence[Any]) -> None:
        chain.connection.executemany("INSERT INTO budget (scope) VALUES (?)", [(line,) for line in lines])
        if self.problem is not None:
            raise self.problem

    def entries(self, lines: Sequence[Any]) -> list[Any]:
        return list(lines)

    def bury(self, chain: Any) -> list[str]:
        return [chain]

    def examine(self, chain: Any) -> None: ...

    def note_synced(self, chain: Any) -> None: ...

    def committed(self, chain: Any, lines: Sequence[Any]) -> None:
        assert not chain.connection.in_transaction
        if lines:
            self.groups.append(list(lines))
        self.written.set()
        if self.afterwards is not None:
            raise self.afterwards

    def idle(self, chain: Any) -> None:
        assert not chain.connection.in_transaction


def grant(name: str) -> Any:
    return lambda connection: connection.execute("INSERT INTO budget (scope) VALUES (?)", (name,)) and None


def names(path: Path) -> list[str]:
    """What another process would see."""
    connection = sqlite3.connect(path)
    try:
        return [name for (name,) in connection.execute("SELECT scope FROM budget ORDER BY scope")]
    finally:
        connection.close()


async def test_what_was_transacted_is_in_the_file_when_the_call_returns(store: Store) -> None:
    await store.transact(grant("a"))

    assert names(store.path) == ["a"]


async def test_a_transaction_returns_its_value(store: Store) -> None:
    assert await store.transact(lambda connection: connection.execute("SELECT 6 * 7").fetchone()) == (42,)


async def test_many_callers_share_a_commit(store: Store) -> None:
    scribe = Scribe()
    store.attach(scribe)

    await asyncio.gather(*(store.append(f"{number:03}", kept=True) for number in range(200)))

    assert names(store.path) == [f"{number:03}" for number in range(200)]
    assert len(scribe.groups) <= 3


async def test_a_failing_transaction_raises_and_affects_no_other(store: Store) -> None:
    def fail(connection: SqlConnection) -> None:
        grant("half")(connection)
        raise ZeroDivisionError

    outcomes = await asyncio.gather(
        store.transact(grant("a")), store.transact(fail), store.transact(grant("b")), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [type(None), ZeroDivisionError, type(None)]
    assert names(store.path) == ["a", "b"]


async def test_a_transaction_that_raises_stop_iteration_does_not_leave_its_caller_waiting(store: Store) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await store.transact(lambda _: next(iter(())))


async def test_deferred_lines_are_written_without_a_waiting_caller(store: Store) -> None:
    scribe = Scribe()
    store.attach(scribe)

    for number in range(10):
        assert store.defer(str(number))

    assert scribe.written.wait(timeout=10), "while the event loop was blocked here"
    assert len(names(store.path)) == 10


async def test_a_burst_of_deferred_lines_is_one_commit(store: Store) -> None:
    scribe = Scribe()
    store.attach(scribe)

    for number in range(500):
        store.defer(f"{number:03}")
    await store.flush()

    assert scribe.groups == [[f"{number:03}" for number in range(500)]]


async def test_close_writes_what_was_deferred(tmp_path: Path) -> None:
    store = Store(tmp_path / "record.db")
    store.attach(Scribe())
    await store.start()

    store.defer("last")
    await store.close()

    assert names(store.path) == ["last"]


async def test_a_failed_commit_is_an_error_for_every_waiting_caller(store: Store) -> None:
    scribe = Scribe()
    scribe.problem = sqlite3.OperationalError("database or disk is full")
    store.attach(scribe)
    gate, begun = threading.Event(), threading.Event()

    def hold(_: SqlConnection) -> None:
        begun.set()
        gate.wait(10)

    held = asyncio.ensure_future(store.transact(hold))
    await asyncio.to_thread(begun.wait, 10)

    waiting = asyncio.gather(store.append("told no", kept=False), store.transact(grant("work")), return_exceptions=True)
    await asyncio.sleep(0)
    gate.set()
    await held
    outcomes = await waiting
    scribe.problem = None

    for outcome in outcomes:
        assert isinstance(outcome, ToolError)
        assert outcome.code is ErrorCode.AUDIT_ERROR
        assert "disk is full" in outcome.message
    assert (store.healthy, store.failures, names(store.path)) == (False, 1, [])


async def test_a_dropped_line_stays_dropped_and_a_kept_one_is_written_when_the_disk_recovers(store: Store) -> None:
    scribe = Scribe()
    store.attach(scribe)
    scribe.problem = sqlite3.OperationalError("database or disk is full")
    store.defer("deferred")
    for line, kept in (("intent", False), ("outcome", True)):
        with pytest.raises(ToolError):
            await store.append(line, kept=kept)
    waiting = store.backlog

    scribe.problem = None
    await store.flush()

    assert waiting == 2
    assert names(store.path) == ["deferred", "outcome"]
    assert (store.healthy, store.backlog) == (True, 0)


async def test_failed_lines_are_retried_without_a_request(tmp_path: Path) -> None:
    store, scribe = Store(tmp_path / "record.db", retry_delay=0.01), Scribe()
    store.attach(scribe)
    await store.start()
    scribe.problem = sqlite3.OperationalError("database or disk is full")
    with pytest.raises(ToolError):
        await store.append("outcome", kept=True)

    scribe.problem = None

    assert await asyncio.to_thread(scribe.written.wait, 10)
    assert names(store.path) == ["outcome"]
    await store.close()


async def test_beyond_its_capacity_no_more_lines_are_deferred(tmp_path: Path) -> None:
    store, scribe = Store(tmp_path / "record.db", capacity=3), Scribe()
    store.attach(scribe)
    await store.start()
    scribe.problem = sqlite3.OperationalError("database or disk is full")

    taken = [store.defer(str(number)) for number in range(5)]
    for number in range(5):
        with pytest.raises(ToolError):
            await store.append(f"kept {number}", kept=True)
    bounded = store.backlog
    scribe.problem = None
    await store.close()

    assert taken == [True, True, True, False, False]
    assert (bounded, store.dropped) == (3, 5)
    assert names(store.path) == ["0", "1", "2"]


async def test_closing_over_a_refusing_disk_says_what_is_lost(tmp_path: Path) -> None:
    store = Store(tmp_path / "record.db")
    scribe = Scribe()
    store.attach(scribe)
    await store.start()
    scribe.problem = sqlite3.OperationalError("database or disk is full")
    store.defer("line")

    with pytest.raises(ToolError, match="1 records were still pending"):
        await store.close()


async def test_an_error_after_the_commit_does_not_make_it_look_unwritten(store: Store) -> None:
    scribe = Scribe()
    scribe.afterwards = OSError("no space for the checkpoint")
    store.attach(scribe)

    await store.append("line", kept=True)

    assert (names(store.path), store.failures) == (["line"], 1)


async def test_a_full_disk_is_an_error_and_the_next_write_goes_on(store: Store) -> None:
    def shrink(connection: SqlConnection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone()

    await store.transact(shrink)
    big = "x" * 100_000
    with pytest.raises(ToolError, match="full"):
        await store.transact(grant(big))

    await store.transact(grant("small"))

    assert names(store.path) == ["small"]


async def test_a_closed_store_refuses_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "record.db")
    await store.start()
    await store.close()

    for attempt in (store.transact(grant("a")), store.flush(), store.read(lambda _: None)):
        with pytest.raises(ToolError):
            await attempt
    with pytest.raises(ToolError):
        store.defer("line")


async def test_a_store_that_is_only_read_refuses_to_write(store: Store) -> None:
    await store.transact(grant("a"))
    reader = Store(store.path, read_only=True)
    await reader.start()

    with pytest.raises(ToolError, match="not open for writing"):
        await reader.transact(grant("b"))
    seen = await reader.read(lambda connection: connection.execute("SELECT scope FROM budget").fetchall())
    await reader.close()

    assert seen == [("a",)]


async def test_a_broken_query_is_an_audit_error(store: Store) -> None:
    with pytest.raises(ToolError, match="no such table") as caught:
        await store.read(lambda connection: connection.execute("SELECT * FROM elsewhere"))

    assert caught.value.code is ErrorCode.AUDIT_ERROR


async def test_several_event_loops_share_a_store(store: Store) -> None:
    async def write(name: str) -> None:
        await asyncio.gather(*(store.transact(grant(f"{name}{number}")) for number in range(20)))

    threads = [threading.Thread(target=lambda name=name: asyncio.run(write(name))) for name in "abc"]
    for thread in threads:
        thread.start()
    await write("d")
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert len(names(store.path)) == 80


async def test_a_cancelled_caller_does_not_affect_the_others(store: Store) -> None:
    gate = threading.Event()
    blocked = asyncio.ensure_future(store.transact(lambda _: gate.wait(10)))
    cancelled = asyncio.ensure_future(store.transact(grant("written all the same")))
    await asyncio.sleep(0)

    cancelled.cancel()
    gate.set()
    await blocked
    await store.flush()

    assert cancelled.cancelled()
    assert names(store.path) == ["written all the same"]


async def test_a_loop_that_has_gone_affects_no_one_else(store: Store) -> None:
    gate = threading.Event()

    async def ask_and_leave() -> None:
        waiting = asyncio.ensure_future(store.transact(lambda _: gate.wait(10)))
        await asyncio.sleep(0)
        waiting.cancel()

    await asyncio.to_thread(lambda: asyncio.run(ask_and_leave()))
    gate.set()

    await store.transact(grant("a"))
    assert names(store.path) == ["a"]


async def test_a_forked_child_must_open_the_store_again(store: Store) -> None:
    def child(answer: Any) -> None:
        try:
            store.defer("line")
        except ToolError as refused:
            answer.send(refused.message)

    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    process.join()

    assert "open it again after a fork" in here.recv()


def test_what_was_deferred_survives_a_program_that_forgets_to_close(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from tests.record.entries import JournalFile, entry

async def main():
    book = JournalFile(Path(sys.argv[1]))
    await book.store.start()
    await book.journal.start()
    book.journal.close(entry({"path": "a"}))

asyncio.run(main())
"""
    path = tmp_path / "record.db"
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, cwd=Path(__file__).parents[3])

    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM audit").fetchone() == (1,)
    connection.close()


async def test_another_process_that_holds_the_file_is_waited_for(store: Store) -> None:
    other = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(store.transact(grant("a")))
    await asyncio.sleep(0)
    assert not waiting.done()

    other.execute("COMMIT")
    other.close()
    await waiting

    assert names(store.path) == ["a"]


async def test_the_record_goes_on_after_a_failed_commit(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.write(3)
        guard = "CREATE TRIGGER stop BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        await book.store.transact(lambda connection: connection.execute(guard) and None)
        written = book.journal.close(entry({"path": "a"}, changes=True))
        assert written is not None
        with pytest.raises(ToolError, match="disk is full"):
            await written
        await book.store.transact(lambda connection: connection.execute("DROP TRIGGER stop") and None)

        await book.store.flush()
        verified = await book.audit.verify()

    assert (verified.ok, verified.records) == (True, 4)
