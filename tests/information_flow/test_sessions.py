"""Sessions hold a bounded amount of text, and forgetting never loosens."""

import asyncio
import time
from typing import Any

import pytest

from tests.world import World
from toolreeve.core.labels import Confidentiality, Integrity, Labels
from toolreeve.information_flow.sessions import MOST_CHARS_HELD, FlowSessions
from toolreeve.policy.flow.memory import KeptResult
from toolreeve.policy.flow.sources import ToolSource
from toolreeve.record.store import Store

PAGE = ToolSource(labels=Labels(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.PRIVATE))


def page(size: int) -> KeptResult:
    return KeptResult("c", "fetch_url", {}, "x" * size, PAGE, own=False, at=0.0)


async def test_all_sessions_together_hold_a_bounded_amount_of_text(world: World) -> None:
    store = Store(world.state / "record.db")
    await store.start()
    sessions = FlowSessions(store.flow_facts(time.time), now=time.time, redact=str)

    for number in range(40):
        sessions.keep("ann", f"s{number}", page(1 << 20))

    held = [sessions.memory("ann", f"s{number}") for number in range(40)]
    assert sum(memory.size for memory in held) <= MOST_CHARS_HELD
    assert held[-1].size == 1 << 20
    assert held[0].has_read_untrusted
    assert held[0].forgotten == {Confidentiality.PRIVATE}
    await store.close()


async def test_concurrent_calls_of_a_session_look_at_the_record_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(world.state / "record.db")
    await store.start()
    table = store.flow_facts(time.time)
    sessions = FlowSessions(table, now=lambda: 0.0, redact=str)
    looked = []
    read = table.labels_read

    async def count(*args: Any, **keywords: Any) -> tuple[frozenset[str], int]:
        looked.append(keywords["session"])
        return await read(*args, **keywords)

    monkeypatch.setattr(table, "labels_read", count)
    memories = await asyncio.gather(*(sessions.load("ann", session) for session in ("s", "t") * 16))

    assert sorted(looked) == ["s", "t"]
    assert len({id(memory) for memory in memories}) == 2
    await store.close()
