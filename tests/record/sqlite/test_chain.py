"""The stored chain on a real file."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolreeve.record.chain import GENESIS, ChainError, ChainStore, Head, Tail, WitnessedRecord
from toolreeve.record.sqlite.chain import SqliteChain
from toolreeve.record.sqlite.database import open_writer


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opened = open_writer(tmp_path / "t.db")
    yield opened
    opened.close()


def fill(chain: ChainStore, *kinds: str) -> Head:
    tail = Tail(chain.next_head())
    rows = [tail.add(f"call {kind}", kind, b'{"ts": 7}') for kind in kinds]
    with chain.transaction():
        chain.append(rows, tail.head)
    return tail.head


def test_a_new_chain_begins_at_the_genesis(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)

    assert chain.stored_head() == chain.next_head() == Head(0, GENESIS)
    assert (chain.hash_at(0), chain.hash_at(1), chain.last_time(0)) == (GENESIS, None, None)
    assert list(chain.rows()) == []


def test_appended_rows_and_their_head_are_read_back(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)
    head = fill(chain, *["note"] * 1_200)

    assert chain.stored_head() == chain.next_head() == head
    assert (head.seq, chain.hash_at(1_200), chain.last_time(1_200)) == (1_200, head.hash, 7)
    assert [seq for chunk in chain.rows() for seq, *_ in chunk] == list(range(1, 1_201))


def test_a_number_already_in_use_is_not_given_out_again(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)
    head = fill(chain, "note")
    connection.execute("INSERT INTO audit VALUES (9, 'x', 'x', x'', x'')")

    assert chain.next_head() == Head(9, head.hash)


def test_a_removed_checkpoint_or_identity_stops_the_chain(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)
    connection.execute("DELETE FROM checkpoint")
    connection.execute("DELETE FROM witness")

    assert chain.stored_head() is None
    with pytest.raises(ChainError, match="checkpoint has been removed"):
        chain.next_head()
    with pytest.raises(ChainError, match="identity was removed"):
        chain.witnessed()


def test_only_intents_without_an_outcome_are_open(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)
    fill(chain, "intent")
    assert chain.open_intents(0) == [("call intent", b'{"ts": 7}')]
    assert chain.open_intents(1) == []

    tail = Tail(chain.next_head())
    chain.append([tail.add("call intent", "call", b"{}")], tail.head)
    assert chain.open_intents(0) == []


def test_the_first_witness_is_remembered_and_the_synced_record_only_grows(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)
    new = chain.witnessed()
    assert new is not None
    assert (len(new.identity), new.since, new.synced) == (16, None, 0)

    chain.set_witnessed(3)
    chain.set_witnessed(5)
    chain.set_synced(4)
    assert chain.witnessed() == WitnessedRecord(new.identity, 3, 5)
    chain.set_synced(8)
    assert chain.witnessed() == WitnessedRecord(new.identity, 3, 8)


def test_a_failed_transaction_leaves_nothing(connection: sqlite3.Connection) -> None:
    chain = SqliteChain(connection)
    tail = Tail(chain.next_head())

    def fail() -> None:
        with chain.transaction():
            chain.append([tail.add("x", "note", b"{}")], tail.head)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()

    assert chain.stored_head() == Head(0, GENESIS)
    assert list(chain.rows()) == []


def test_a_snapshot_does_not_see_later_rows(connection: sqlite3.Connection, tmp_path: Path) -> None:
    other = open_writer(tmp_path / "t.db")
    reading = SqliteChain(other)
    with reading.snapshot():
        before = reading.stored_head()
        fill(SqliteChain(connection), "note")
        assert reading.stored_head() == before == Head(0, GENESIS)
    assert reading.next_head().seq == 1
    other.close()
