"""Each kind of tampering, done with plain SQL by an attacker who can write to the file."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.record.entries import entry, opened
from toolreeve.core.errors import ToolError
from toolreeve.record import verify as verification
from toolreeve.record.audit import Audit
from toolreeve.record.chain import link
from toolreeve.record.engine import StoreError
from toolreeve.record.sqlite.chain import SqliteChain
from toolreeve.record.store import Store
from toolreeve.record.verify import SHOWN_PROBLEMS, Verification

COUNT = 20


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A record of twenty calls, properly closed."""
    path = tmp_path / "record.db"
    async with opened(path) as book:
        await book.write(COUNT)
    return path


def tamper(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


async def verify(path: Path, expect: str | None = None) -> Verification:
    store = Store(path, read_only=True)
    await store.start()
    try:
        return await Audit(store).verify(expect=expect)
    finally:
        await store.close()


def call_id(path: Path, seq: int) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("SELECT call_id FROM audit WHERE seq = ?", (seq,)).fetchone()[0])
    finally:
        connection.close()


async def test_an_untouched_record_is_whole(path: Path) -> None:
    verified = await verify(path)

    assert (verified.ok, verified.records, verified.head.seq, verified.problems) == (True, COUNT, COUNT, [])


async def test_an_empty_record_is_whole(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db"):
        pass

    assert (await verify(tmp_path / "record.db")).ok


@pytest.mark.parametrize(
    "change",
    [
        "body = CAST(replace(CAST(body AS TEXT), 'ada', 'eve') AS BLOB)",
        "kind = 'intent'",
        "call_id = 'somebody else'",
        "hash = zeroblob(32)",
        "hash = 'text'",
        "body = 'no JSON at all'",
        "body = 7",
    ],
)
async def test_an_edited_record_is_found_and_named(path: Path, change: str) -> None:
    tamper(path, f"UPDATE audit SET {change} WHERE seq = 7")

    first = (await verify(path)).problems[0]

    assert (first.seq, first.call_id) == (7, call_id(path, 7))
    assert "changed" in first.text


async def test_an_edited_record_with_a_new_hash_no_longer_fits_the_next_one(path: Path) -> None:
    connection = sqlite3.connect(path)
    (previous,) = connection.execute("SELECT hash FROM audit WHERE seq = 6").fetchone()
    name, kind, body = connection.execute("SELECT call_id, kind, body FROM audit WHERE seq = 7").fetchone()
    forged = body.replace(b"ada", b"eve")
    connection.execute(
        "UPDATE audit SET body = ?, hash = ? WHERE seq = 7",
        (forged, link(previous, 7, name.encode(), kind.encode(), forged)),
    )
    connection.commit()
    connection.close()

    verified = await verify(path)

    assert [problem.seq for problem in verified.problems] == [8]
    assert "the record before it" in verified.problems[0].text


@pytest.mark.parametrize(("gone", "first"), [("seq = 1", 1), ("seq = 9", 9), ("seq BETWEEN 4 AND 6", 4)])
async def test_removed_records_are_found_and_named(path: Path, gone: str, first: int) -> None:
    tamper(path, f"DELETE FROM audit WHERE {gone}")

    verified = await verify(path)

    assert [problem.seq for problem in verified.problems] == [first]
    assert verified.problems[0].text.startswith("removed: ")


async def test_a_removed_last_record_is_found_by_the_checkpoint_in_the_database(path: Path) -> None:
    tamper(path, "DELETE FROM audit WHERE seq > 18")

    texts = [str(problem) for problem in (await verify(path)).problems]

    assert any("records 19 to 20 are missing" in text for text in texts)


async def test_a_removed_last_record_is_found_by_the_witness_alone(path: Path) -> None:
    tamper(
        path,
        "DELETE FROM audit WHERE seq = 20",
        "UPDATE checkpoint SET seq = 19, hash = (SELECT hash FROM audit WHERE seq = 19)",
    )

    (problem,) = (await verify(path)).problems

    assert (problem.state, problem.seq) == ("lost", 20)
    assert "1 acknowledged record is missing from the end (20 to 20)" in problem.text


async def test_a_removed_record_stays_missing_when_others_are_written_after_it(path: Path) -> None:
    tamper(path, "DELETE FROM audit WHERE seq = 20")
    async with opened(path) as book:
        await book.write(3)

    verified = await verify(path)

    removed, noted = verified.problems
    assert (removed.seq, noted.seq, noted.gap) == (20, 21, 21)
    assert "missing before record 21" in removed.text
    assert "the witness saw another record 20" in noted.text


async def test_removing_everything_is_found(path: Path) -> None:
    tamper(path, "DELETE FROM audit", "UPDATE checkpoint SET seq = 0, hash = zeroblob(32)")

    (problem,) = (await verify(path)).problems

    assert "20 acknowledged records are missing from the end (1 to 20)" in problem.text


async def test_an_inserted_record_is_found_and_named(path: Path) -> None:
    tamper(
        path,
        "UPDATE audit SET seq = -seq WHERE seq > 10",
        "UPDATE audit SET seq = 1 - seq WHERE seq < 0",
        "INSERT INTO audit SELECT 11, 'forged', kind, body, hash FROM audit WHERE seq = 5",
    )

    first = (await verify(path)).problems[0]

    assert (first.seq, first.call_id) == (11, "forged")


async def test_a_record_with_an_impossible_number_is_found(path: Path) -> None:
    tamper(path, "INSERT INTO audit SELECT -3, 'forged', kind, body, hash FROM audit WHERE seq = 5")

    first = (await verify(path)).problems[0]

    assert (first.seq, first.call_id) == (-3, "forged")


async def test_a_well_made_record_at_the_end_is_found_by_the_checkpoint(path: Path) -> None:
    connection = sqlite3.connect(path)
    (head,) = connection.execute("SELECT hash FROM audit WHERE seq = 20").fetchone()
    row = (21, "forged", "call", b"{}", link(head, 21, b"forged", b"call", b"{}"))
    connection.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()

    (problem,) = (await verify(path)).problems

    assert (problem.seq, "inserted at the end" in problem.text) == (21, True)


async def test_a_foreign_record_does_not_stop_the_journal_and_stays_visible(path: Path) -> None:
    tamper(path, "INSERT INTO audit SELECT 21, 'forged', kind, body, hash FROM audit WHERE seq = 5")
    async with opened(path) as book:
        await book.write(2)

    first = (await verify(path)).problems[0]

    assert (first.seq, first.call_id) == (21, "forged")


async def test_records_in_another_order_are_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE audit SET seq = -1 WHERE seq = 5",
        "UPDATE audit SET seq = 5 WHERE seq = 6",
        "UPDATE audit SET seq = 6 WHERE seq = -1",
    )

    assert [problem.seq for problem in (await verify(path)).problems][:2] == [5, 6]


async def test_a_null_where_the_schema_was_altered_is_a_problem_like_any_other(path: Path) -> None:
    tamper(
        path,
        "CREATE TABLE copy (seq INTEGER PRIMARY KEY, call_id, kind, body, hash)",
        "INSERT INTO copy SELECT seq, call_id, kind, body, hash FROM audit",
        "DROP TABLE audit",
        "ALTER TABLE copy RENAME TO audit",
        "UPDATE audit SET body = NULL, hash = NULL, call_id = NULL WHERE seq = 4",
    )

    assert [problem.seq for problem in (await verify(path)).problems] == [4, 5]


async def test_a_missing_checkpoint_in_the_database_is_a_problem_and_stops_the_journal(path: Path) -> None:
    tamper(path, "DELETE FROM checkpoint")

    verified = await verify(path)
    with pytest.raises(StoreError, match="audit verify"):
        async with opened(path) as book:
            await book.write(1)

    assert not verified.ok


async def test_a_head_kept_elsewhere_shows_a_rewritten_history(path: Path) -> None:
    kept = (await verify(path)).head.hash.hex()
    async with opened(path) as book:
        await book.write(5)

    assert (await verify(path, expect=kept)).ok
    (problem,) = (await verify(path, expect="ab" * 32)).problems
    assert "no record has the expected hash" in problem.text


async def test_an_expectation_that_is_not_a_hash_is_refused(path: Path) -> None:
    with pytest.raises(ToolError, match="not a hexadecimal hash"):
        await verify(path, expect="xyz")


async def test_a_flood_of_problems_is_counted_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    async with opened(path) as book:
        await book.write(SHOWN_PROBLEMS + 50)
    tamper(path, "UPDATE audit SET kind = 'x'")

    verified = await verify(path)

    assert (len(verified.problems), verified.unlisted) == (SHOWN_PROBLEMS, 50)


async def test_the_record_can_be_checked_while_it_grows(path: Path) -> None:
    async with opened(path) as book:
        for _ in range(10):
            waiting = [book.journal.close(entry({}, changes=True)) for _ in range(20)]
            verified = await verify(path)
            assert verified.ok, verified.problems
            for written in waiting:
                assert written is not None
                await written


def test_no_byte_can_move_from_one_field_to_the_next() -> None:
    parts: list[Callable[[], bytes]] = [
        lambda: link(bytes(32), 1, b"ab", b"c", b"d"),
        lambda: link(bytes(32), 1, b"a", b"bc", b"d"),
        lambda: link(bytes(32), 1, b"ab", b"", b"cd"),
    ]

    assert len({part() for part in parts}) == 3


@pytest.mark.parametrize(
    "statements",
    [
        (),
        ("UPDATE audit SET body = '{}' WHERE seq = 7",),
        ("DELETE FROM audit WHERE seq = 10",),
        ("DELETE FROM audit WHERE seq BETWEEN 9 AND 12",),
        ("DELETE FROM audit WHERE seq <= 11",),
        ("DELETE FROM audit WHERE seq > 8",),
        ("UPDATE audit SET seq = -5 WHERE seq = 10", "UPDATE audit SET hash = 'text' WHERE seq = 11"),
        ("UPDATE audit SET seq = 500 WHERE seq = 10",),
        ("UPDATE checkpoint SET seq = 1000000",),
        ("DELETE FROM audit",),
    ],
)
async def test_processes_find_together_what_one_walk_finds(
    path: Path, monkeypatch: pytest.MonkeyPatch, statements: tuple[str, ...]
) -> None:
    tamper(path, *statements)
    expect = "00" * 32
    alone = await verify(path, expect)
    monkeypatch.setattr(verification, "PARALLEL", 10)
    monkeypatch.setattr(verification, "cores", lambda: 3)
    seen: list[int] = []

    store = Store(path, read_only=True)
    await store.start()
    together = await Audit(store).verify(expect=expect, progress=seen.append)
    await store.close()

    assert together == alone
    assert len(seen) == 3
    assert seen[-1] == alone.records


async def test_a_record_that_was_archived_meanwhile_is_walked_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of a file have snapshots of their own."""
    alone = await verify(path)
    monkeypatch.setattr(verification, "PARALLEL", 10)
    monkeypatch.setattr(verification, "cores", lambda: 2)
    reopener = SqliteChain.reopener

    def archived_meanwhile(chain: SqliteChain) -> Any:
        tamper(path, "DELETE FROM audit WHERE seq < 5")
        return reopener(chain)

    monkeypatch.setattr(SqliteChain, "reopener", archived_meanwhile)

    assert await verify(path) == alone
