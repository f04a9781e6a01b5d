"""Information flow on the road: what each session has read and what people said.

Labels are assigned when a result is recorded; what the session holds is looked at only when a side effect is judged.
"""

from collections.abc import Callable

from toolreeve.core.call import new_id
from toolreeve.record.flow_facts import FactKind, FlowFact, FlowTable

MOST_SAID = 4096
"""Characters of one message that vouch: what a user pastes beyond that is somebody else's text."""


class InformationFlow:
    def __init__(self, table: FlowTable, *, now: Callable[[], float], redact: Callable[[str], str]) -> None:
        self._table = table
        self._now = now
        self._redact = redact

    async def say(self, text: str, *, user: str, session: str, by: str = "") -> None:
        """A message that a person typed. It vouches for the values it names, and says what was asked for."""
        fact = FlowFact(
            id=new_id(),
            kind=FactKind.SAID,
            user=user,
            session=session,
            value=self._redact(text[:MOST_SAID]),
            by=by or user,
            at=self._now(),
        )
        await self._table.add([fact])
