"""A store without an event loop writes the same record as one with it."""

from pathlib import Path

import pytest

from toolreeve.core.errors import ToolError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.audit import Audit, Filter
from toolreeve.record.journal import Journal
from toolreeve.record.sqlite.blocking_store import BlockingStore, run_now
from toolreeve.record.store import Store


def note_blocking(path: Path, text: str) -> None:
    store = BlockingStore(path)
    journal = Journal(store, Redactor(()), lambda: 1.0)
    run_now(store.start())
    run_now(journal.start())
    run_now(journal.note("test", {"text": text}))
    run_now(journal.stop())
    run_now(store.close())


async def test_both_stores_continue_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "toolreeve.db"
    note_blocking(path, "one")
    store = Store(path)
    journal = Journal(store, Redactor(()), lambda: 1.0)
    await store.start()
    await journal.start()
    await journal.note("test", {"text": "two"})
    note_blocking(path, "three")
    await journal.note("test", {"text": "four"})
    found = await Audit(store).list(Filter(kind="test"))
    verified = await Audit(store).verify()
    await journal.stop()
    await store.close()

    assert [each.body["text"] for each in found] == ["four", "three", "two", "one"]
    assert verified.ok
    assert list((tmp_path / "toolreeve.db.live").iterdir()) == []


def test_a_failure_of_the_work_is_raised_and_undoes_only_the_work(tmp_path: Path) -> None:
    store = BlockingStore(tmp_path / "toolreeve.db")
    run_now(store.start())

    def fail(connection: object) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_now(store.transact(fail))
    run_now(store.close())
    with pytest.raises(ToolError, match="not open"):
        run_now(store.transact(lambda _: None))


def test_a_coroutine_that_waits_is_refused() -> None:
    class Waits:
        def __await__(self):  # type: ignore[no-untyped-def]
            yield

    async def wait() -> None:
        await Waits()

    with pytest.raises(RuntimeError, match="waits"):
        run_now(wait())
