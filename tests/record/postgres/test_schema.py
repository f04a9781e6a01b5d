"""The schema: made once, upgraded under a lock, and refused if it is newer."""

import asyncio
import re
import sqlite3
import time
from pathlib import Path

import psycopg
import pytest

from tests.record.postgres.server import PostgresServer
from toolreeve.core.errors import ToolreeveError
from toolreeve.record.engine import StoreError
from toolreeve.record.postgres import schema
from toolreeve.record.sql.transfer import TABLES
from toolreeve.record.sqlite.database import open_writer
from toolreeve.record.store import RecordStore, open_store


async def started(path: Path, url: str) -> RecordStore:
    store = open_store(path / "x.db", url)
    await store.start()
    return store


async def test_processes_that_start_at_once_make_one_schema(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.new_database()

    stores = await asyncio.gather(*(started(tmp_path, url) for _ in range(8)))

    for store in stores:
        await store.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT version FROM toolreeve.migrations").fetchall() == [(1,), (2,), (3,)]


async def test_an_older_schema_is_upgraded_with_what_it_holds(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.new_database()
    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        store = await started(tmp_path, url)
        await store.budget.reserve("day", 5, None)
        await store.close()

    store = await started(tmp_path, url)

    assert await store.budget.spent("day") == 5
    assert store.contents(time.time).sizes() == {}
    await store.close()


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    await (await started(tmp_path, url)).close()
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO toolreeve.migrations (version) VALUES (99)")

    with pytest.raises(StoreError, match=r"written by a newer Toolreeve \(schema 99.*Upgrade toolreeve"):
        await started(tmp_path, url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://host/db", "does not begin with postgresql://"),
        ("postgresql://host/db?sslmode", "state.url is not a PostgreSQL URL: missing key/value separator"),
        ("postgresql:///db?host=/nowhere", "cannot be reached"),
        ("postgresql://127.0.0.1:1/db", "cannot be reached"),
    ],
)
async def test_a_wrong_url_is_named(tmp_path: Path, url: str, said: str) -> None:
    with pytest.raises(ToolreeveError, match=re.escape(said)):
        await started(tmp_path, url)


async def test_a_password_is_in_no_message(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as refused:
        await started(tmp_path, "postgresql://ann:hunter2@127.0.0.1:1/db")

    assert "hunter2" not in str(refused.value)
    assert "postgresql://127.0.0.1:1/db" in str(refused.value)


async def test_a_user_without_rights_is_told_which(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")

    with pytest.raises(StoreError, match=r"permission denied.*GRANT CREATE ON DATABASE"):
        await started(tmp_path, url.replace("postgres@", "stranger@"))


async def test_an_ordinary_role_is_enough(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE keeper LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO keeper")

    store = await started(tmp_path, url.replace("postgres@", "keeper@"))

    assert await store.budget.reserve("a", 1, 1)
    await store.read(lambda database: database.execute("SELECT pg_logical_emit_message(true, 'x', '')").fetchall())
    await store.close()


async def test_a_reader_makes_no_schema(tmp_path: Path, postgres: PostgresServer) -> None:
    store = open_store(tmp_path / "x.db", postgres.new_database(), read_only=True)

    with pytest.raises(StoreError, match="holds no record yet"):
        await store.start()


async def test_both_databases_have_the_same_tables_and_columns(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    await (await started(tmp_path, url)).close()
    query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'toolreeve'"
    with psycopg.connect(url) as connection:
        there = {(table, column) for table, column in connection.execute(query) if table in TABLES}
    path = tmp_path / "record.db"
    open_writer(path).close()
    with sqlite3.connect(path) as lite:
        here = {(name, column) for name in TABLES for _, column, *_ in lite.execute(f"PRAGMA table_info({name})")}

    assert there == here
