"""Former contents of files in the database: whole, and pruned with care."""

import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from tests.record.postgres.server import PostgresServer
from toolreeve.record.postgres.contents import PIECE, PostgresContents
from toolreeve.record.store import open_store


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
async def contents(tmp_path: Path, url: str) -> AsyncIterator[PostgresContents]:
    store = open_store(tmp_path / "x.db", url)
    await store.start()
    found = store.contents(time.time)
    assert isinstance(found, PostgresContents)
    yield found
    await store.close()


@pytest.fixture
def save(tmp_path: Path, contents: PostgresContents) -> Callable[[bytes], str]:
    def save(content: bytes) -> str:
        (tmp_path / "file").write_bytes(content)
        descriptor = os.open(tmp_path / "file", os.O_RDONLY)
        try:
            return contents.save(descriptor)
        finally:
            os.close(descriptor)

    return save


@pytest.mark.parametrize("content", [b"", b"x\0y", b"a" * PIECE, os.urandom(3 * PIECE + 1)])
async def test_a_content_comes_back_whole(
    contents: PostgresContents, save: Callable[[bytes], str], content: bytes
) -> None:
    digest = save(content)

    assert save(content) == digest
    assert contents.has(digest)
    assert contents.load(digest) == content
    assert contents.sizes() == {digest: len(content)}


async def test_a_content_that_was_changed_does_not_come_back(
    contents: PostgresContents, save: Callable[[bytes], str], url: str
) -> None:
    digest = save(b"x")
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE toolreeve.contents SET body = 'y'")

    assert contents.load(digest) is None
    assert contents.load("0" * 64) is None


async def test_only_old_contents_without_references_are_pruned(
    contents: PostgresContents, save: Callable[[bytes], str], url: str
) -> None:
    wanted, unwanted, young = save(b"wanted"), save(b"unwanted"), save(b"young")
    with psycopg.connect(url) as connection:
        old = "UPDATE toolreeve.contents SET at = now() - interval '2 hours' WHERE digest <> %s"
        connection.execute(old, (young,))

    contents.prune([wanted])

    assert [contents.has(each) for each in (wanted, unwanted, young)] == [True, False, True]
