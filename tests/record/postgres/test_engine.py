"""What survives a database that goes away, and a gateway that dies."""

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import psycopg
import pytest

from tests.record.backends import Backend, url_of
from tests.record.entries import JournalFile, entry, opened
from tests.record.postgres.server import PostgresServer
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record import verify as verification
from toolreeve.record.archive import ROTATED, rotate
from toolreeve.record.audit import Filter
from toolreeve.record.chain import Head
from toolreeve.record.jobs import Log
from toolreeve.record.postgres.batches import Batch, BatchWriter
from toolreeve.record.postgres.chain import PostgresChain
from toolreeve.record.postgres.engine import PostgresEngine

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _in_postgres(postgres: PostgresServer) -> Iterator[None]:
    Backend.server = postgres
    yield
    Backend.server = None


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    server = PostgresServer()
    Backend.server = server
    yield server
    server.close()


@asynccontextmanager
async def hurried(path: Path) -> AsyncIterator[JournalFile]:
    """A journal whose callers wait only briefly for a database that is away."""
    async with opened(path) as book:
        cast("PostgresEngine", book.store)._patience = 0.2
        yield book


async def call(book: JournalFile) -> str:
    made = entry({"path": "a"}, changes=True)
    await book.journal.intend(made)
    written = book.journal.close(made)
    assert written is not None
    await written
    return made.call.id


async def kinds(book: JournalFile) -> Counter[str]:
    return Counter([record.kind async for record in book.audit.stream(Filter())])


async def test_many_calls_at_once_share_their_commits(tmp_path: Path) -> None:
    async with opened(tmp_path / "x.db") as book:
        await asyncio.gather(*(call(book) for _ in range(200)))
        verified = await book.audit.verify()
        batches = cast("PostgresEngine", book.store)._batches.number

    assert verified.ok, verified.problems
    assert verified.records == 400
    assert batches < 100


async def test_gateways_that_write_at_once_have_one_chain(tmp_path: Path) -> None:
    async with opened(tmp_path / "one" / "x.db") as one:
        Backend.urls[tmp_path / "two" / "x.db"] = url_of(tmp_path / "one" / "x.db")
        async with opened(tmp_path / "two" / "x.db") as two:
            for book in (one, two):
                cast("PostgresEngine", book.store)._batches.alone = False
            await asyncio.gather(*(call(book) for book in (one, two) for _ in range(100)))
            verified = await one.audit.verify()
            elsewhere = await two.audit.verify()

    assert verified.ok, verified.problems
    assert elsewhere.ok, elsewhere.problems
    assert elsewhere.records == verified.records >= 400


async def test_while_the_database_is_away_calls_are_refused_and_then_go_on(
    tmp_path: Path, own_server: PostgresServer
) -> None:
    async with hurried(tmp_path / "x.db") as book:
        before = await call(book)
        await asyncio.to_thread(own_server.stop)

        with pytest.raises(ToolError) as refused:
            await call(book)
        with pytest.raises(ToolError) as unread:
            await book.audit.show(before)
        assert book.journal.close(entry({})) is None, "what only reads is deferred"
        await asyncio.to_thread(own_server.start)
        after = await asyncio.wait_for(recovered(book), 30)
        await book.store.flush()
        verified = await book.audit.verify()
        found = await kinds(book)

    assert refused.value.code is unread.value.code is ErrorCode.AUDIT_ERROR
    assert verified.ok, verified.problems
    assert (before != after, found["call"]) == (True, 3)
    assert book.store.backlog == 0


async def recovered(book: JournalFile) -> str:
    while True:
        try:
            return await call(book)
        except ToolError:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_restart_within_patience_refuses_nobody_and_doubles_nothing(
    tmp_path: Path, own_server: PostgresServer, mode: str
) -> None:
    async with opened(tmp_path / "x.db") as book:
        cast("PostgresEngine", book.store)._patience = 30.0
        calls = asyncio.gather(*(several(book, 25) for _ in range(16)))
        await call(book)
        await asyncio.to_thread(own_server.stop, mode)
        await asyncio.to_thread(own_server.start)
        acknowledged = [number for each in await calls for number in each]
        verified = await book.audit.verify()
        found = Counter([record.call_id async for record in book.audit.stream(Filter(kind="call"))])

    assert verified.ok, verified.problems
    assert {number: found[number] for number in acknowledged} == dict.fromkeys(acknowledged, 1)


async def several(book: JournalFile, count: int) -> list[str]:
    return [await call(book) for _ in range(count)]


async def test_a_batch_that_was_written_but_not_answered_is_not_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0
    attempt = BatchWriter._attempt

    def lose_every_other_answer(batches: BatchWriter, batch: Batch, log: Log) -> PostgresChain:
        nonlocal attempts
        attempts += 1
        answer = attempt(batches, batch, log)
        if attempts % 2:
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return answer

    monkeypatch.setattr(BatchWriter, "_attempt", lose_every_other_answer)
    async with opened(tmp_path / "x.db") as book:
        for _ in range(3):
            await call(book)
        found = await kinds(book)
        verified = await book.audit.verify()

    assert found == {"intent": 3, "call": 3}
    assert verified.ok, verified.problems
    assert attempts == 12


async def test_an_acknowledged_batch_that_the_database_lost_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as book:
        for _ in range(3):
            await call(book)
        with psycopg.connect(url_of(path), options="-c search_path=toolreeve") as connection:
            (last,) = connection.execute("SELECT max(seq) FROM audit").fetchone() or (0,)
            connection.execute("DELETE FROM audit WHERE seq > %s", (last - 2,))
            row = connection.execute("SELECT seq, hash FROM audit WHERE seq = %s", (last - 2,)).fetchone()
            connection.execute("UPDATE checkpoint SET seq = %s, hash = %s", row)
            connection.execute("UPDATE processes SET batch = batch - 2")

        await call(book)
        verified = await book.audit.verify()

    assert [finding.kind for finding in book.journal.findings] == ["lost"]
    assert verified.state == "lost"
    assert [problem.text[:30] for problem in verified.problems] == ["lost: 2 acknowledged records a"]


WRITER = [sys.executable, "-m", "tests.record.writer"]


def killed_writer(path: Path, url: str) -> list[str]:
    """The lines of a process that writes records, until it is killed."""
    environ = {**os.environ, "TESTED_URL": url}
    process = subprocess.Popen([*WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environ)
    with process as running:
        assert running.stdout is not None
        heard = [running.stdout.readline() for _ in range(40)]
        running.kill()
        return heard + running.stdout.readlines()


async def test_the_calls_of_a_killed_gateway_are_closed_by_another(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    url = url_of(path)
    heard = await asyncio.to_thread(killed_writer, path, url)
    acknowledged = {(words[0], words[1]) for line in heard if len(words := line.split()) == 2 and line.endswith("\n")}
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE toolreeve.processes SET lease = now() - interval '1 s'")

    async with opened(path) as book:
        verified = await book.audit.verify()
        records = [record async for record in book.audit.stream(Filter())]

    assert verified.ok, verified.problems
    assert acknowledged <= {(record.call_id, record.kind) for record in records}
    ended = {record.call_id for record in records if record.kind in ("call", "lost")}
    assert {record.call_id for record in records if record.kind == "intent"} <= ended


async def test_a_day_whose_records_were_all_archived_is_dropped_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    parts = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'audit'::regclass"
    async with opened(path) as book:
        await book.write(4)
        with psycopg.connect(url_of(path), options="-c search_path=toolreeve") as connection:
            day = connection.execute("SELECT (min(day) - 1)::text, min(day)::text FROM audit").fetchone()
            assert day is not None
            connection.execute(
                f"CREATE TABLE audit_earlier PARTITION OF audit FOR VALUES FROM ('{day[0]}') TO ('{day[1]}')"
            )
            connection.execute("UPDATE audit SET day = day - 1 WHERE seq <= 3")
        before = await book.audit.verify()
        with psycopg.connect(url_of(path), options="-c search_path=toolreeve") as connection:
            assert connection.execute(parts).fetchone() == (2,)
        head = Head(3, bytes.fromhex((await book.audit.hashes([3]))[3]))
        body = {"last": head.seq, "head": head.hash.hex()}
        await book.journal.note_with(ROTATED, body, partial(rotate, head=head))
        after = await book.audit.verify()
        with psycopg.connect(url_of(path), options="-c search_path=toolreeve") as connection:
            assert connection.execute(parts).fetchone() == (1,)

    assert (before.records, after.state, after.records, after.base) == (4, "intact", 2, head)


async def test_new_records_wake_the_other_gateways(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as one, opened(path) as other:
        woken = threading.Event()
        one.audit.watch(woken.set)
        assert await asyncio.to_thread(woken.wait, 20), "it looks once it listens"
        woken.clear()
        cast("PostgresEngine", other.store)._batches.alone = False

        await call(other)

        assert await asyncio.to_thread(woken.wait, 20)


async def test_gateways_see_what_others_describe_and_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    facts = {"policy": "old"}
    async with opened(path) as one, opened(path) as other:
        other.store.describe(lambda: facts)
        facts["policy"] = "new"
        beat = other.store._beat  # type: ignore[attr-defined]
        with psycopg.connect(url_of(path), options="-c search_path=toolreeve", autocommit=True) as connection:
            await asyncio.to_thread(beat, connection)
        found = {each["name"]: each for each in await one.store.gateways()}

    assert found[other.journal.process]["policy"] == "new"
    assert "policy" not in found[one.journal.process]


async def test_gateways_see_each_other_and_who_died(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as one, opened(path) as other:
        with psycopg.connect(url_of(path)) as connection:
            past = "UPDATE toolreeve.processes SET lease = now() - interval '1 s' WHERE name = %s"
            connection.execute(past, (other.journal.process,))
        found = {each["name"]: each for each in await one.store.gateways()}

    assert found[one.journal.process]["alive"]
    assert not found[other.journal.process]["alive"]
    assert {(each["host"], each["process"]) for each in found.values()} == {(os.uname().nodename, os.getpid())}


async def test_a_gateway_that_was_declared_dead_enters_again(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as book:
        await call(book)
        with psycopg.connect(url_of(path)) as connection:
            connection.execute("DELETE FROM toolreeve.processes")

        await call(book)

        assert await book.journal.is_alive(book.journal.process)
        assert (await book.audit.verify()).ok


async def test_the_witness_shows_that_the_end_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as book:
        await book.write(10)
    with psycopg.connect(url_of(path), options="-c search_path=toolreeve") as connection:
        connection.execute("DELETE FROM audit WHERE seq > 7")
        row = connection.execute("SELECT seq, hash FROM audit WHERE seq = 7").fetchone()
        connection.execute("UPDATE checkpoint SET seq = %s, hash = %s", row)

    async with opened(path) as book:
        verified = await book.audit.verify()

    assert verified.state == "lost"
    assert "3 acknowledged records are missing" in str(verified.problems[0])


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE audit SET body = '{}' WHERE seq = 3", "changed"),
        ("DELETE FROM audit WHERE seq = 3", "removed"),
        ("UPDATE audit SET kind = 'other' WHERE seq = 3", "changed"),
        ("DELETE FROM checkpoint", "checkpoint was removed"),
    ],
)
@pytest.mark.parametrize("cores", [1, 2])
async def test_tampering_is_found(
    tmp_path: Path, statement: str, said: str, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "PARALLEL", 2)
    monkeypatch.setattr(verification, "cores", lambda: cores)
    path = tmp_path / "x.db"
    async with opened(path) as book:
        await book.write(5)
    with psycopg.connect(url_of(path), options="-c search_path=toolreeve") as connection:
        connection.execute(statement)
    reader = JournalFile(path)
    reader.store.read_only = True
    await reader.store.start()

    verified = await reader.audit.verify()
    await reader.store.close()

    assert verified.state == "tampered"
    assert any(said in str(problem) for problem in verified.problems)
