"""Stores in either database: the contract of the tables is tested with both."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg

from tests.record.postgres.server import PostgresServer
from toolreeve.record.store import RecordStore, open_store


class Backend:
    """Which database `store_at` opens, and the URLs of the databases that stand for the paths of a test."""

    server: PostgresServer | None = None
    urls: dict[Path, str] = {}  # noqa: RUF012 - of the whole test run


def url_of(path: Path) -> str:
    if Backend.server is None:
        return os.environ.get("TESTED_URL", "")  # as a test gave it to a process that it started
    if path not in Backend.urls:
        Backend.urls[path] = Backend.server.new_database()
    return Backend.urls[path]


def store_at(path: Path, *, read_only: bool = False) -> RecordStore:
    """The store at this path, in the database that the fixture `database` chose. It is not started yet."""
    return open_store(path, url_of(path), read_only=read_only)


def stored_bytes(path: Path) -> bytes:
    """Everything that the database at this path holds."""
    if Backend.server is None:
        return b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*") if each.is_file())
    with psycopg.connect(url_of(path)) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'toolreeve'").fetchall()
        found = [connection.execute(f"SELECT t.*::text FROM toolreeve.{name} AS t").fetchall() for (name,) in names]
        bodies = [body for (body,) in connection.execute("SELECT body FROM toolreeve.audit")]
    return repr(found).encode() + b"".join(bodies)


@asynccontextmanager
async def refusing_records(store: RecordStore) -> AsyncIterator[None]:
    """Meanwhile the database refuses new records."""
    body = "BEGIN SELECT RAISE(ABORT, 'disk is full'); END" if Backend.server is None else "EXECUTE FUNCTION refuse()"
    refuse = (
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'disk is full'; END $$"
    )
    if Backend.server is not None:
        await store.transact(lambda connection: connection.execute(refuse) and None)
    guard = f"CREATE TRIGGER stop BEFORE INSERT ON audit {'' if Backend.server is None else 'FOR EACH ROW'} {body}"
    await store.transact(lambda connection: connection.execute(guard) and None)
    yield
    drop = "DROP TRIGGER stop" + ("" if Backend.server is None else " ON audit")
    await store.transact(lambda connection: connection.execute(drop) and None)
