"""From the SQLite file to PostgreSQL: everything, with its hashes, or nothing."""

import asyncio
import hashlib
import sqlite3
import time
from pathlib import Path

import pytest

from tests.record.entries import entry, opened
from tests.record.postgres.server import PostgresServer
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Change
from toolreeve.core.grants import Grant
from toolreeve.record.agent_runs import AgentRunRow
from toolreeve.record.audit import Audit
from toolreeve.record.blobs import Blobs
from toolreeve.record.changes import ChangeOwner
from toolreeve.record.credentials import StoredCredential
from toolreeve.record.migration import Migrated, migrate_state
from toolreeve.record.pending import PendingStore
from toolreeve.record.store import RecordStore, Store, open_store
from toolreeve.record.tasks import TaskRow
from toolreeve.record.webhooks import NewDelivery, Webhook

OWNER = ChangeOwner(user="ann", session="s")
QUESTION = {"call_id": "c", "session": "s", "user": "ann", "role": "admin", "origin": "", "tool": "t"}


async def fill(path: Path) -> None:
    (path.parent / "former").write_text("former")
    with (path.parent / "former").open("rb") as former:
        Blobs(path.parent / "undo", time.time).save(former.fileno())
    async with opened(path) as book:
        await book.write(700)
        made = entry({"path": "ä\0"}, changes=True)
        await book.journal.intend(made)
        await (book.journal.close(made) or asyncio.sleep(0))
        store = book.store
        question = {**QUESTION, "danger": "low", "args": {}}
        await PendingStore(store.pending, time.time).file(binding="b", holder="h", tool="t", question=question)
        await store.grants(time.time).add(
            Grant(
                id="g", scope="session", user="ann", session="s", tool="t", digest="d", covers={}, granted_by="bea",
                granted_at=1.0,
            )
        )  # fmt: skip
        await store.budget.reserve("day", 5, None)
        change = Change(kind="write", path="/a", before=None, after="sha256:x")
        for _ in range(3):
            await store.changes.note(change, call_id="c", session="s", owner=OWNER, at=1.0)
        await store.credentials.add(
            StoredCredential(
                id="t", kind="token", digest=b"d", name="n", user="ann", role="admin", scopes=("a",), created=1.0
            )
        )
        await store.tasks.add(TaskRow(id="x", owner="ann", context="", state="s", body=b"b", last=1), [b"e"])
        await store.agent_runs.begin(
            AgentRunRow(id="r", user="ann", workspace="w", session="s", model="m", question="?", began=1.0)
        )
        await store.webhooks.put(Webhook(id="h", url="https://a.example", secret="s" * 16), now=1.0)
        await store.webhooks.enqueue(
            "calls", before=None, after=1, deliveries=[NewDelivery("h", "e", "", b"{}")], now=1.0
        )


async def migrated(path: Path, url: str) -> tuple[Migrated, RecordStore]:
    target = open_store(path, url)
    await target.start()
    try:
        return await migrate_state(path, target), target
    except BaseException:
        await target.close()
        raise


async def test_everything_is_copied_and_the_chain_continues(tmp_path: Path, postgres: PostgresServer) -> None:
    path = tmp_path / "toolreeve.db"
    await fill(path)

    done, target = await migrated(path, postgres.new_database())

    source = Store(path, read_only=True)
    await source.start()
    for store in (source, target):
        assert (await Audit(store).verify()).head == done.head
    questions = [await PendingStore(store.pending, time.time).list() for store in (source, target)]
    assert questions[0] == questions[1] != []
    assert await target.changes.standing(call_id="c", session=None) == await source.changes.standing(
        call_id="c", session=None
    )
    assert await target.grants(time.time).list() == await source.grants(time.time).list()
    assert await target.credentials.list(now=2.0) == await source.credentials.list(now=2.0)
    assert await target.tasks.find("x") == await source.tasks.find("x")
    assert await target.webhooks.list() == await source.webhooks.list()
    assert await target.budget.spent("day") == 5
    former = hashlib.sha256(b"former").hexdigest()
    assert await asyncio.to_thread(target.contents(time.time).load, former) == b"former"
    change = Change(kind="write", path="/b", before=None, after="sha256:x")
    assert await target.changes.note(change, call_id="d", session="s", owner=OWNER, at=2.0) == 4, "numbers go on"
    await source.close()
    await target.close()


async def test_a_database_that_is_not_empty_is_left_alone(tmp_path: Path, postgres: PostgresServer) -> None:
    path = tmp_path / "toolreeve.db"
    await fill(path)
    url = postgres.new_database()
    _, target = await migrated(path, url)
    await target.close()

    with pytest.raises(ToolError, match="holds records already"):
        await migrated(path, url)


async def test_a_record_that_was_tampered_with_is_not_migrated(tmp_path: Path, postgres: PostgresServer) -> None:
    path = tmp_path / "toolreeve.db"
    await fill(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE audit SET body = '{}' WHERE seq = 5")

    with pytest.raises(ToolError, match=r"not migrated: its record is not intact: record 5"):
        await migrated(path, postgres.new_database())


async def test_a_file_in_use_is_not_migrated(tmp_path: Path, postgres: PostgresServer) -> None:
    path = tmp_path / "toolreeve.db"
    async with opened(path):
        with pytest.raises(ToolError, match="a process still uses it"):
            await migrated(path, postgres.new_database())
