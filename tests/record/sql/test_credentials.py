"""Stored credentials: listed until they expire, and redeemed once."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.record.backends import store_at
from toolreeve.record.agent_runs import AgentRunRow
from toolreeve.record.credentials import LINK, TOKEN, StoredCredential

pytestmark = pytest.mark.usefixtures("database")
CREDENTIAL = StoredCredential(
    id="a", kind=TOKEN, digest=b"a", name="n", user="ann", role="admin", scopes=("read",), tools=("x*",), created=1.0
)


async def test_a_link_is_redeemed_once_and_tokens_are_listed_until_they_expire(tmp_path: Path) -> None:
    one, other = store_at(tmp_path / "t.db"), store_at(tmp_path / "t.db")
    for store in (one, other):
        await store.start()
    link = replace(CREDENTIAL, id="l", kind=LINK, digest=b"l", expires=50.0)
    await one.credentials.add(CREDENTIAL)
    await one.credentials.add(link)
    redeemed = await asyncio.gather(
        *(store.credentials.redeem(b"l", now=2.0) for store in (one, other, one, other, one, other))
    )
    listed = await other.credentials.list(now=2.0)
    revoked = await other.credentials.revoke("a")
    for store in (one, other):
        await store.close()

    assert [each for each in redeemed if each is not None] == [link]
    assert (listed, revoked) == ([CREDENTIAL], CREDENTIAL)


async def test_runs_of_agents_are_kept_for_their_user(tmp_path: Path) -> None:
    store = store_at(tmp_path / "t.db")
    await store.start()
    runs = store.agent_runs
    row = AgentRunRow(id="run-1", user="ann", workspace="w", session="s", model="m", question="?", began=1.0)
    await runs.begin(row)
    await runs.add_messages("run-1", 0, [b"one", b"two"])
    await runs.end("run-1", ended=2.0, stop="done", steps=2, cost=0.5)
    await runs.begin(row)
    found = await runs.find("ann", "run")
    others = await runs.recent("bea", 5)
    messages = await runs.messages("run-1")
    await store.close()

    assert [(run.id, run.stop, run.steps, run.cost) for run in found] == [("run-1", "", 2, 0.5)]
    assert (list(others), messages) == ([], [b"one", b"two"])
