"""Sessions hold a bounded amount of text, and forgetting never loosens."""

import time

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
