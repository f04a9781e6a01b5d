"""Changes in a real database: noted, listed, undone and forgotten."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.record.backends import store_at
from toolreeve.core.files import Change
from toolreeve.record.changes import ChangeOwner, ChangeTable, NotedChange
from toolreeve.record.store import Store

pytestmark = pytest.mark.usefixtures("database")

ONE = Change(kind="write", path="/w/one", before="sha256:1", after="sha256:2", made=("/w",))
TWO = Change(kind="delete", path="/w/two", before="sha256:3")


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[ChangeTable]:
    store = store_at(path / "t.db")
    await store.start()
    try:
        yield store.changes
    finally:
        await store.close()


async def note(changes: ChangeTable, change: Change, *, at: float = 1.0) -> int:
    owner = ChangeOwner(user="ann", session="session")
    return await changes.note(change, call_id="call", session="session", owner=owner, at=at)


async def test_changes_are_listed_newest_first_until_they_are_undone(tmp_path: Path) -> None:
    async with opened(tmp_path) as changes:
        first = await note(changes, ONE)
        second = await note(changes, TWO)
        both = [NotedChange(id=second, change=TWO), NotedChange(id=first, change=ONE)]

        assert await changes.standing(call_id="call", session=None) == both
        assert await changes.standing(call_id=None, session="session") == both
        assert await changes.standing(call_id="other", session=None) == []
        assert changes.read_standing(call_id="call", session=None) == both

        await changes.mark_undone(second)
        assert await changes.standing(call_id="call", session=None) == both[1:]
        assert await changes.recent(10) == [TWO, ONE]
        assert await changes.recent(1) == [TWO]


def test_before_the_first_start_nothing_has_been_changed(tmp_path: Path) -> None:
    changes = Store(tmp_path / "none.db").changes

    assert changes.read_standing(call_id="call", session=None) == []


async def test_old_changes_and_those_beyond_the_size_are_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path) as changes:
        await note(changes, ONE, at=1.0)
        await note(changes, ONE, at=5.0)
        await note(changes, TWO, at=6.0)

        assert await changes.forget(before=2.0, sizes={"1": 10, "3": 10}, most_bytes=20) == {"1", "3"}
        assert await changes.recent(10) == [TWO, ONE]
        assert await changes.forget(before=2.0, sizes={"1": 10, "3": 10}, most_bytes=15) == {"3"}
        assert await changes.recent(10) == [TWO]
