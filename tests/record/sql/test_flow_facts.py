"""Facts about the flow of information in a real database, shared by two stores as by two processes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.record.backends import store_at
from tests.record.sql.test_grants import Clock
from toolreeve.core.call import new_id
from toolreeve.core.labels import Confidentiality, Integrity, Labels
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.audit import Audit
from toolreeve.record.flow_facts import FactKind, FlowFact, FlowTable
from toolreeve.record.journal import Journal
from toolreeve.record.sql import flow_facts as module
from toolreeve.record.store import RecordStore

pytestmark = pytest.mark.usefixtures("database")


@asynccontextmanager
async def opened(path: Path, clock: Clock | None = None) -> AsyncIterator[tuple[RecordStore, FlowTable]]:
    store = store_at(path / "t.db")
    journal = Journal(store, Redactor(), clock or Clock())
    await store.start()
    await journal.start()
    try:
        yield store, store.flow_facts(clock or Clock())
    finally:
        await journal.stop()
        await store.close()


def fact(**changes: Any) -> FlowFact:
    whole = FlowFact(
        id=new_id(), kind=FactKind.SAID, user="ann", session="s", value="mail bob@x.org", by="ann", at=1000.0
    )
    return replace(whole, **changes)


async def test_another_process_finds_what_the_user_said(tmp_path: Path) -> None:
    said = fact()

    async with opened(tmp_path) as (_, one), opened(tmp_path) as (_, other):
        await one.add([said])

        assert await other.find(user="ann", session="s") == [said]


async def test_words_hold_for_their_session_and_user_only(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, table):
        await table.add([fact()])

        assert await table.find(user="ann", session="t") == []
        assert await table.find(user="bob", session="s") == []


async def test_a_known_recipient_holds_in_every_session_until_it_expires(tmp_path: Path) -> None:
    clock = Clock()
    known = fact(kind=FactKind.KNOWN, session="", tool="send", parameter="to", value="bob@x.org", expires=2000.0)

    async with opened(tmp_path, clock) as (_, table):
        await table.add([known])
        assert await table.find(user="ann", session="other") == [known]

        clock.now = 2000.0
        assert await table.find(user="ann", session="other") == []


async def test_declassifying_and_revoking_are_recorded_with_who_did_it(tmp_path: Path) -> None:
    trusted = fact(kind=FactKind.TRUSTED, value="eve@x.org")

    async with opened(tmp_path) as (store, table):
        await table.add([trusted])
        assert await table.revoke(trusted.id[:-1], by="root") == trusted
        assert await table.find(user="ann", session="s") == []
        assert await table.revoke(trusted.id, by="root") is None

        rows = [row for row in await Audit(store).list() if row.kind == "label"]
    assert sorted((row.body["by"], row.body["trusted"], row.body["value"]) for row in rows) == [
        ("ann", True, "eve@x.org"),
        ("root", False, "eve@x.org"),
    ]


async def test_labels_of_content_only_grow(tmp_path: Path) -> None:
    untrusted = Labels(Integrity.UNTRUSTED, Confidentiality.PUBLIC)
    secret = Labels(Integrity.TRUSTED, Confidentiality.SECRET)

    async with opened(tmp_path) as (_, table):
        await table.label_content(["d"], untrusted, call_id="1", at=1.0)
        await table.label_content(["d"], secret, call_id="2", at=2.0)

        assert await table.labels_of(["d", "e"]) == {"d": Labels(Integrity.UNTRUSTED, Confidentiality.SECRET)}


async def test_facts_of_one_user_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)

    async with opened(tmp_path) as (_, table):
        await table.add([fact(at=float(number), value=str(number)) for number in range(5)])

        assert [each.value for each in await table.find(user="ann", session="s")] == ["2", "3", "4"]
