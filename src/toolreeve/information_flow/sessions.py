"""Sessions of the information flow: their memory and their record.

Bounded in number and in size. A session that was dropped is loaded again: that it read untrusted text and held private
or secret data is on record, as is what other processes read in it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from toolreeve.core.call import new_id
from toolreeve.core.labels import Integrity
from toolreeve.policy.flow.matching import canonical
from toolreeve.policy.flow.memory import CONFIDENTIAL, KeptResult, SessionMemory
from toolreeve.record.flow_facts import FactKind, FlowFact, FlowTable

MOST_SAID = 4096
"""Characters of one message that vouch: what a user pastes beyond that is text of others."""
MOST_SESSIONS = 256
MOST_CHARS_HELD = 16 << 20
"""Characters of results that all sessions hold together; beyond that, those used longest ago drop theirs."""
FRESH_SECONDS = 1.0
"""How long what other processes recorded may go unnoticed."""
DAY = 86_400.0


@dataclass(slots=True)
class _HeldSession:
    memory: SessionMemory
    loaded_at: float | None = None
    seen: frozenset[str] = frozenset()
    last: int = 0
    """The number of the last record that was looked at."""
    lock: "asyncio.Lock" = field(default_factory=lambda: asyncio.Lock())


class FlowSessions:
    def __init__(
        self,
        table: FlowTable,
        *,
        now: Callable[[], float],
        redact: Callable[[str], str],
        own: Sequence[str] = (),
    ) -> None:
        self._table = table
        self._now = now
        self._redact = redact
        self._own = tuple(own)
        self._held: OrderedDict[tuple[str, str], _HeldSession] = OrderedDict()
        self._size = 0

    def memory(self, user: str, session: str) -> SessionMemory:
        """What this process holds of the session, without looking at the record."""
        return self._hold(user, session).memory

    def keep(self, user: str, session: str, result: KeptResult) -> None:
        memory = self.memory(user, session)
        before = memory.size
        memory.keep(result)
        self._size += memory.size - before
        if self._size > MOST_CHARS_HELD:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        for held in self._held.values():
            self._size -= held.memory.size
            held.memory.forget_results()
            if self._size <= MOST_CHARS_HELD:
                return

    async def load(self, user: str, session: str) -> SessionMemory:
        """The session, with what other processes recorded about it up to a moment ago."""
        held = self._hold(user, session)
        if not self._is_fresh(held):
            async with held.lock:  # one of many concurrent calls looks
                if not self._is_fresh(held):
                    now = self._now()
                    await self._note_labels(held, user, session)
                    facts = await self._table.find(user=user, session=session)
                    held.loaded_at = now
                    _apply(held, facts)
        return held.memory

    def _is_fresh(self, held: _HeldSession) -> bool:
        return held.loaded_at is not None and 0 <= self._now() - held.loaded_at < FRESH_SECONDS

    async def _note_labels(self, held: _HeldSession, user: str, session: str) -> None:
        """What was read in the session, and is not in its memory here."""
        memory = held.memory
        kept = [result.call_id for result in memory.results]
        words, held.last = await self._table.labels_read(user=user, session=session, after=held.last, held=kept)
        if Integrity.UNTRUSTED in words:
            memory.mark_untrusted()
        memory.forgotten |= {each for each in CONFIDENTIAL if each in words}

    async def say(self, text: str, *, user: str, session: str, by: str = "") -> None:
        """A message that a person typed. The record gets it without secrets."""
        memory = await self.load(user, session)
        text = text[:MOST_SAID]
        fact = self._fact(FactKind.SAID, self._redact(text), user=user, by=by)
        await self._table.add([replace(fact, session=session)])
        held = self._hold(user, session)
        held.seen |= {fact.id}
        memory.say(text)

    async def know(self, recipients: Sequence[tuple[str, str, str]], *, user: str, by: str, days: float) -> None:
        """Keep recipients (tool, parameter, value) as known in every session of the user, until they expire."""
        facts = []
        for tool, parameter, value in recipients:
            fact = self._fact(FactKind.KNOWN, canonical(value), user=user, by=by)
            facts.append(replace(fact, tool=tool, parameter=parameter, expires=self._now() + days * DAY))
        await self._table.add(facts)
        for (whose, _), held in self._held.items():
            if whose == user and held.loaded_at is not None:
                held.loaded_at -= FRESH_SECONDS

    def _hold(self, user: str, session: str) -> _HeldSession:
        key = (user, session)
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _HeldSession(SessionMemory(own=self._own))
            if len(self._held) > MOST_SESSIONS:
                _, dropped = self._held.popitem(last=False)
                self._size -= dropped.memory.size
        else:
            self._held.move_to_end(key)
        return held

    def _fact(self, kind: FactKind, value: str, *, user: str, by: str) -> FlowFact:
        return FlowFact(id=new_id(), kind=kind, user=user, value=value, by=by or user, at=self._now())


def _apply(held: _HeldSession, facts: Sequence[FlowFact]) -> None:
    memory = held.memory
    memory.known = {(each.tool, each.parameter, each.value) for each in facts if each.kind is FactKind.KNOWN}
    memory.trusted = {each.value for each in facts if each.kind is FactKind.TRUSTED}
    memory.trusted_calls = {each.value for each in facts if each.kind is FactKind.SOURCE}
    for each in facts:
        if each.kind is FactKind.SAID and each.id not in held.seen:
            memory.say(each.value)
    held.seen |= {each.id for each in facts}
