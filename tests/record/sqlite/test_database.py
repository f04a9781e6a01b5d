import sqlite3
import stat
from pathlib import Path

import pytest

from toolreeve.record.engine import StoreError
from toolreeve.record.sqlite.database import open_reader, open_writer
from toolreeve.record.sqlite.schema import MIGRATIONS


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_database_and_its_directory_are_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "record.db"

    open_writer(path).close()

    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_a_database_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    path.touch(mode=0o644)
    path.chmod(0o644)

    open_writer(path).close()

    assert mode(path) == 0o600


def test_the_side_files_of_a_database_in_use_are_private_too(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    connection = open_writer(path)

    modes = {name.name: mode(name) for name in tmp_path.iterdir()}
    connection.close()

    assert modes == {"record.db": 0o600, "record.db-wal": 0o600, "record.db-shm": 0o600}


def test_a_commit_reaches_the_disk(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "record.db")

    (journal,), (synchronous,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous")
    )
    connection.close()

    assert (journal, synchronous) == ("wal", 2)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match=r"newer Toolreeve.*Upgrade toolreeve"):
        open_writer(path)
    with pytest.raises(StoreError, match="newer Toolreeve"):
        open_reader(path)

    assert path.read_bytes() == before


def test_a_file_that_is_not_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    path.write_bytes(b"these are my holiday notes\n" * 100)

    with pytest.raises(StoreError, match="move it away"):
        open_writer(path)
    with pytest.raises(StoreError, match="move it away"):
        open_reader(path)

    assert path.read_bytes().startswith(b"these are my holiday notes")


def test_a_place_that_cannot_be_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()

    with pytest.raises(StoreError, match=r"file/state/record\.db cannot be used: .*choose another state directory"):
        open_writer(blocked / "state" / "record.db")


def test_reading_what_was_never_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing has been recorded there yet"):
        open_reader(tmp_path / "record.db")

    assert list(tmp_path.iterdir()) == []


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    open_writer(tmp_path / "record.db").close()
    reader = open_reader(tmp_path / "record.db")

    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM audit")
    reader.close()


def test_a_closed_database_can_be_read_as_a_lone_file(tmp_path: Path) -> None:
    open_writer(tmp_path / "record.db").close()
    tmp_path.chmod(0o500)
    try:
        reader = open_reader(tmp_path / "record.db")
        count = reader.execute("SELECT count(*) FROM audit").fetchone()
        reader.close()
    finally:
        tmp_path.chmod(0o700)

    assert count == (0,)


def test_opening_again_applies_no_migration_twice(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    first = open_writer(path)
    first.execute("INSERT INTO budget (scope, spent) VALUES ('a', 7)")
    first.close()

    again = open_writer(path)
    kept = again.execute("SELECT scope, spent FROM budget").fetchall()
    again.close()

    assert kept == [("a", 7)]


def test_a_path_with_odd_characters_is_one_path(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=memory#b%20c" / "record.db"

    open_writer(path).close()
    open_reader(path).close()

    assert all(found.name.startswith("record.db") for found in path.parent.iterdir())
    assert path.stat().st_size > 0
