"""Tasks of other agents: saved by one of several processes, with their events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.record.backends import store_at
from toolreeve.record.tasks import TaskQuery, TaskRow, TaskTable

pytestmark = pytest.mark.usefixtures("database")
TASK = TaskRow(id="t", owner="ann", context="c", state="working", body=b"b", last=1, created=1.0, changed=1.0)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[TaskTable]:
    store = store_at(path / "t.db")
    await store.start()
    yield store.tasks
    await store.close()


async def test_a_change_is_saved_by_one_of_several_processes(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await one.add(TASK, [b"begun"])
        changes = [replace(TASK, state=f"s{number}", last=2, changed=2.0) for number in range(6)]
        saved = await asyncio.gather(
            *((one, other)[number % 2].save(row, [row.state.encode()], after=1) for number, row in enumerate(changes))
        )
        found = await other.find("t")
        events = await one.events("t", after=0)

    winner = changes[saved.index(True)]
    assert saved.count(True) == 1
    assert found == winner
    assert events == [(1, b"begun"), (2, winner.state.encode())]


async def test_tasks_are_found_paged_and_swept(tmp_path: Path) -> None:
    async with opened(tmp_path) as table:
        for number in range(5):
            await table.add(replace(TASK, id=f"t{number}", changed=float(number), question="q" * (number == 2)), [b"e"])
        await table.add(replace(TASK, id="old", ended=True, changed=0.5), [b"e"])
        page, total = await table.page(TaskQuery(owner="ann", limit=2))
        rest, _ = await table.page(TaskQuery(owner="ann", limit=9, before=(page[-1].changed, page[-1].id)))
        waiting = await table.waiting_for("q")
        unended = await table.unended()
        swept = await table.sweep(before=1.0)

    assert [task.id for task in page] == ["t4", "t3"]
    assert [task.id for task in rest] == ["t2", "t1", "old", "t0"]
    assert (total, [task.id for task in waiting], len(unended), swept) == (6, ["t2"], 5, 1)
