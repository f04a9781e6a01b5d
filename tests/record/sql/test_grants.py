"""Grants in a real database, shared by two stores as by two processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.record.backends import store_at
from toolreeve.core.call import new_id
from toolreeve.core.grants import Grant, GrantStore
from toolreeve.record.sql import grants as module
from toolreeve.record.sql.grants import SqlGrants

pytestmark = pytest.mark.usefixtures("database")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def opened(path: Path, clock: Clock | None = None) -> AsyncIterator[GrantStore]:
    store = store_at(path / "t.db")
    await store.start()
    try:
        yield SqlGrants(store, clock or Clock())
    finally:
        await store.close()


def grant(**changes: Any) -> Grant:
    whole = Grant(
        id=new_id(),
        scope="session",
        user="ann",
        session="s",
        tool="write_file",
        digest="d",
        covers={"paths": ["/a"], "large": 2**80},
        granted_by="ann",
        granted_at=1000.0,
    )
    return replace(whole, **changes)


async def test_another_process_finds_the_grant_as_it_was_given(tmp_path: Path) -> None:
    given = grant()

    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await one.add(given)

        assert await other.find(user="ann", session="s", tool="write_file") == [given]


@pytest.mark.parametrize("asked", [{"user": "bob"}, {"session": "t"}, {"tool": "delete_file"}])
async def test_a_grant_covers_no_other_user_session_or_tool(tmp_path: Path, asked: dict[str, str]) -> None:
    async with opened(tmp_path) as grants:
        await grants.add(grant())

        assert await grants.find(**{"user": "ann", "session": "s", "tool": "write_file"} | asked) == []


async def test_a_grant_without_a_session_is_found_in_every_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as grants:
        await grants.add(given := grant(session=""))

        assert await grants.find(user="ann", session="any", tool="write_file") == [given]


async def test_an_expired_grant_is_neither_found_nor_listed_nor_used(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock) as grants:
        await grants.add(given := grant(expires=1010.0))
        assert await grants.use(given)
        clock.now = 1010.0

        assert await grants.find(user="ann", session="s", tool="write_file") == []
        assert await grants.list() == []
        assert not await grants.use(given)


async def test_of_many_callers_only_as_many_as_granted_use_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await one.add(given := grant(uses=3))

        used = await asyncio.gather(*(store.use(given) for store in [one, other] * 8))

        assert sum(used) == 3
        assert await one.find(user="ann", session="s", tool="write_file") == []


async def test_a_grant_without_a_number_of_uses_is_not_used_up(tmp_path: Path) -> None:
    async with opened(tmp_path) as grants:
        await grants.add(given := grant())

        assert [await grants.use(given) for _ in range(3)] == [True] * 3
        assert await grants.list() == [given]


async def test_the_same_yes_given_again_renews_the_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as grants:
        await grants.add(first := grant(uses=1))
        await grants.use(first)
        await grants.add(again := grant(uses=2, expires=2000.0))

        (found,) = await grants.list()

    assert (found.uses, found.expires, found.digest) == (again.uses, again.expires, first.digest)


async def test_a_grant_is_revoked_by_a_unique_prefix_and_for_every_process(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await one.add(grant(id="abc1", digest="1"))
        await one.add(grant(id="abd2", digest="2"))

        assert [await other.revoke(number, by="ann") for number in ("", "ab", "zz", "abc")] == [
            False,
            False,
            False,
            True,
        ]
        assert [given.id for given in await one.list()] == ["abd2"]
        assert not await one.use(grant(id="abc1"))


async def test_all_grants_of_a_session_are_revoked_together(tmp_path: Path) -> None:
    async with opened(tmp_path) as grants:
        for session, digest in (("s", "1"), ("s", "2"), ("t", "3")):
            await grants.add(grant(session=session, digest=digest))

        assert await grants.revoke_all(by="ann", session="s") == 2
        assert await grants.revoke_all(by="ann") == 1


async def test_beyond_the_most_the_oldest_of_that_user_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    async with opened(tmp_path) as grants:
        await grants.add(grant(user="bob", digest="0", granted_at=1.0))
        for number in range(3):
            await grants.add(grant(digest=str(number), granted_at=10.0 + number))

        assert [(given.user, given.digest) for given in await grants.list()] == [
            ("bob", "0"),
            ("ann", "1"),
            ("ann", "2"),
        ]
