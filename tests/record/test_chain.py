import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolreeve.record.chain import GENESIS, ChainError, Head, Tail, link
from toolreeve.record.sqlite.chain import ROWS_AT_ONCE, SqliteChain
from toolreeve.record.sqlite.database import open_writer


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = open_writer(tmp_path / "db")
    yield connection
    connection.close()


def test_a_hash_covers_the_one_before_the_number_the_lengths_and_every_field() -> None:
    framed = GENESIS + (1).to_bytes(8, "big") + (4).to_bytes(4, "big") + (6).to_bytes(4, "big") + b"call" + b"intent"

    assert link(GENESIS, 1, b"call", b"intent", b"{}") == hashlib.sha256(framed + b"{}").digest()


def test_a_byte_that_moves_from_one_field_to_the_next_changes_the_hash() -> None:
    spellings = [
        (b"ab", b"c", b"d"),
        (b"a", b"bc", b"d"),
        (b"a", b"b", b"cd"),
        (b"abc", b"", b"d"),
        (b"", b"abc", b"d"),
    ]

    assert len({link(GENESIS, 1, *fields) for fields in spellings}) == len(spellings)


def test_the_first_record_is_number_one_and_each_is_linked_to_the_one_before() -> None:
    tail = Tail(Head(0, GENESIS))

    first = tail.add("a", "intent", b"1")
    second = tail.add("b", "outcome", b"2")

    assert first == (1, "a", "intent", b"1", link(GENESIS, 1, b"a", b"intent", b"1"))
    assert second == (2, "b", "outcome", b"2", link(first[4], 2, b"b", b"outcome", b"2"))
    assert tail.head == Head(2, second[4])


@pytest.mark.parametrize("number", [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 2 * ROWS_AT_ONCE + 1])
def test_any_number_of_rows_is_inserted_whole_and_in_order(connection: sqlite3.Connection, number: int) -> None:
    tail = Tail(Head(0, GENESIS))
    rows = [tail.add(f"call {index}", "outcome", b"body") for index in range(number)]

    SqliteChain(connection).append(rows, tail.head)

    assert connection.execute("SELECT seq, call_id, kind, body, hash FROM audit ORDER BY seq").fetchall() == rows


def test_many_rows_take_few_statements(connection: sqlite3.Connection) -> None:
    tail = Tail(Head(0, GENESIS))
    statements: list[str] = []
    connection.set_trace_callback(statements.append)

    SqliteChain(connection).append([tail.add("call", "outcome", b"") for _ in range(2 * ROWS_AT_ONCE)], tail.head)

    assert len([statement for statement in statements if statement.startswith("INSERT INTO audit")]) == 2


def test_a_new_database_starts_at_the_genesis(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)

    assert chain.stored_head() == chain.next_head() == Head(0, GENESIS)
    assert len(GENESIS) == 32
    assert not any(GENESIS)


def test_the_chain_goes_on_from_the_checkpoint_and_not_from_the_last_row(connection: sqlite3.Connection) -> None:
    """What was removed from the end stays visible as a gap."""
    tail = Tail(Head(0, GENESIS))
    rows = [tail.add("call", "outcome", b"") for _ in range(3)]
    chain = SqliteChain(connection)
    chain.append(rows, tail.head)

    connection.execute("DELETE FROM audit WHERE seq > 1")

    assert chain.next_head() == tail.head


def test_a_row_beyond_the_checkpoint_keeps_its_number(connection: sqlite3.Connection) -> None:
    tail = Tail(Head(0, GENESIS))
    chain = SqliteChain(connection)
    rows = [tail.add("call", "outcome", b"")]
    saved = tail.head
    chain.append(rows, saved)
    chain.append([tail.add("planted", "outcome", b"")], saved)

    assert chain.next_head() == Head(2, saved.hash)
    assert chain.stored_head() == saved


def test_without_its_checkpoint_the_chain_is_not_continued(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM checkpoint")
    chain = SqliteChain(connection)

    assert chain.stored_head() is None
    with pytest.raises(ChainError, match="checkpoint has been removed"):
        chain.next_head()
