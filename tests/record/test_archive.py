"""Rotation: all of its records move, or none does."""

import io
from functools import partial
from pathlib import Path

import pytest

from tests.record.entries import opened
from toolreeve.record.archive import ROTATED, base_of, read_archive, rotate, write_archive
from toolreeve.record.chain import ChainError, ChainStore, Head
from toolreeve.record.verify import verify_archive

pytestmark = pytest.mark.usefixtures("database")
ALL = 4e9


async def test_a_rotation_that_fails_after_the_removal_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.write(3)
        before = await book.audit.verify()

        def fail(chain: ChainStore) -> None:
            rotate(chain, before.head)
            raise ChainError("killed here")

        with pytest.raises(ChainError, match="killed here"):
            await book.journal.note_with(ROTATED, {}, fail)
        after = await book.audit.verify()

    assert (after.ok, after.records, after.head) == (True, before.records, before.head)


async def test_a_record_that_changed_since_it_was_archived_is_not_removed(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.write(3)
        with pytest.raises(ChainError, match="has changed"):
            await book.store.change_chain(lambda chain: rotate(chain, Head(2, bytes(32))))

        assert (await book.audit.verify()).records >= 3


async def test_a_second_archive_continues_the_first(tmp_path: Path) -> None:
    files = [io.BytesIO(), io.BytesIO()]
    heads = []
    async with opened(tmp_path / "record.db") as book:
        for file in files:
            await book.write(2)
            head = await book.store.read_chain(partial(write_archive, stream=file, before=ALL))
            body = {"last": head.seq, "head": head.hash.hex()}
            await book.journal.note_with(ROTATED, body, partial(rotate, head=head))
            heads.append(head)
        base = await book.store.read_chain(base_of)
        verified = await book.audit.verify()

    assert (base, verified.state, verified.records) == (heads[1], "intact", 1)
    for file, head in zip(files, heads, strict=True):
        file.seek(0)
        assert verify_archive(read_archive(file), heads={head.hash}).ok
