"""Repair of a broken or tampered record.

Nothing is removed or rewritten: what is missing for the next record to be written is replaced in the transaction that
records it, and broken links are listed in a record of their own, each with the digest of the row as it is now.
"""

from collections.abc import Mapping
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import ChainStore, Tail
from toolreeve.record.journal import VERSION
from toolreeve.record.store import RecordStore
from toolreeve.record.verify import Verification

REPAIR = "repair"
MOST_BROKEN = 1_000
AT_ONCE = 50
"""So that no record is cut."""


async def begin_repair(store: RecordStore, who: Mapping[str, Any], now: float) -> None:
    """Replace a missing checkpoint or identity, and record that a repair began. Starts and closes the store."""
    await store.start()
    try:
        await store.change_chain(lambda chain: _begin(chain, {"v": VERSION, "ts": now, **who}))
    finally:
        await store.close()


def _begin(chain: ChainStore, body: Mapping[str, Any]) -> None:
    restored = {"checkpoint": chain.restore_checkpoint(), "identity": chain.restore_identity()}
    tail = Tail(chain.next_head())
    row = tail.add("", REPAIR, json.dumps({**body, "restored": [name for name, done in restored.items() if done]}))
    chain.append([row], tail.head)


def to_bodies(found: Verification) -> list[dict[str, Any]]:
    """The broken links, for the record, some in each. Raises ToolError if there are too many."""
    if len(found.broken) > MOST_BROKEN:
        raise ToolError(
            ErrorCode.AUDIT_ERROR,
            f"{len(found.broken):,} links are broken, more than the {MOST_BROKEN:,} that a repair lists",
            suggestions=("move the database away, keep it as evidence, and start a new record",),
        )
    links = [{**each.problem.to_dict(), "row": each.row} for each in found.broken]
    return [{"problems": links[start : start + AT_ONCE]} for start in range(0, len(links), AT_ONCE)]
