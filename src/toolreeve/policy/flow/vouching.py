"""Vouching: the user's words, trusted fields, named records, earlier approvals.

Support is a property of where a value stands, so nothing is cleaned by copying it. Money, credentials and commands need
the user or a trusted source: nothing is inferred for them.
"""

import re
from dataclasses import dataclass

from toolreeve.core.effects import EffectKind
from toolreeve.core.labels import Authority
from toolreeve.policy.flow.authority import Leaf, ToolAuthority
from toolreeve.policy.flow.matching import (
    LINK,
    canonical,
    fold,
    holds,
    host_of,
    is_address,
    is_short,
    number,
    numbers,
    spelled_part,
    words,
)
from toolreeve.policy.flow.memory import KeptResult, Record, SessionMemory

_LEVELS = {"r": "read", "ro": "read", "w": "writ", "rw": "writ", "x": "execut"}
"""Permissions that are written as letters, and the stem of the word that a user says."""
_EXACT = frozenset((Authority.CREDENTIAL, Authority.COMMAND, Authority.PATH))
"""Kinds in which letters of both cases differ."""
_DESTINATIONS = frozenset((Authority.DESTINATION, Authority.HOST))
_ID_KEY = re.compile(r"(?:^|_)id_?$|path|filename", re.IGNORECASE)
_AMOUNT_KEY = re.compile(r"amount|price|total", re.IGNORECASE)
_TITLE_KEY = re.compile(r"title|name|subject", re.IGNORECASE)
_SHORT_ID = 5
_HERE = frozenset(("localhost", "127.0.0.1", "[::1]", "0.0.0.0", ""))  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True)
class Vouching:
    """The support that one session gives. `infers`: fields of records that the user named vouch as well."""

    memory: SessionMemory
    infers: bool = True

    def vouches(self, tool: ToolAuthority, leaf: Leaf) -> bool:
        value = canonical(leaf.value)
        memory = self.memory
        asked_for = (tool.name, leaf.key, value)
        spends = tool.effect is EffectKind.SPEND or leaf.kind == Authority.COMMAND
        if not value or asked_for in memory.approved or self.said(leaf, value):
            return bool(value)
        if leaf.kind in _DESTINATIONS and host_of(value) in _HERE:
            return True
        if self.is_trusted(value, declassified=not spends):
            return True
        if asked_for in memory.known and leaf.kind in _KNOWABLE:
            return True
        return self._may_infer(tool, leaf) and self._in_record(leaf, value, tool.effect)

    def said(self, leaf: Leaf, value: str) -> bool:
        """By the user: destinations anywhere in the session, everything else in the current request."""
        memory = self.memory
        written = str(leaf.value)
        match leaf.kind:
            case Authority.AMOUNT:
                return number(value) in numbers(memory.request) - {None}
            case Authority.CREDENTIAL if value in _LEVELS:
                return _LEVELS[value] in memory.request
            case Authority.CREDENTIAL | Authority.COMMAND | Authority.PATH:
                return holds(memory.request_exact, written.strip())
            case Authority.OBJECT if len(value) < _SHORT_ID:
                return _called_an_id(memory.request, value)
            case Authority.OBJECT:
                return holds(memory.request, value) and spelled_part(written) in memory.request_exact
            case _:
                return holds(memory.said, value) and spelled_part(written) in memory.exact

    def names_value(self, text: str) -> bool:
        """Whether the user or a trusted source names a link or an address that stands in a text."""
        value = canonical(text)
        spelled = holds(self.memory.said, value) and spelled_part(text) in self.memory.exact
        return spelled or self.is_trusted(value)

    def may_visit(self, tool: ToolAuthority, key: str, url: str) -> bool:
        """Whether a request that only reads may go there: to a host that the user named, or to a URL exactly as it was
        read. A URL that was composed can carry data out."""
        memory = self.memory
        value = canonical(url)
        host = host_of(value)
        if host in _HERE or self.names_value(url) or self.names_value(host):
            return True
        if {(tool.name, key, value), (tool.name, key, host)} & (memory.approved | memory.known):
            return True
        return any(holds(result.text, value) and not result.own for result in memory.results)

    def is_trusted(self, value: str, *, declassified: bool = True) -> bool:
        """One of the user's own identifiers, a declassified value, or a short field of a trusted source."""
        memory = self.memory
        if value in memory.own or (declassified and value in memory.trusted):
            return True
        if declassified and memory.trusted_calls:
            chosen = [result for result in memory.results if result.call_id in memory.trusted_calls]
            if any(holds(result.text, value) for result in chosen):
                return True
        declared = [result for result in memory.results if result.vouches and result.source.declared]
        return any(self._stands_in(result, value) for result in declared)

    def _stands_in(self, result: KeptResult, value: str) -> bool:
        if value not in result.text:
            return False
        fields = result.source.fields
        return any(
            canonical(leaf) == value
            for _, key, leaf in result.leaves
            if is_short(leaf) and (not fields or key in fields)
        )

    def _may_infer(self, tool: ToolAuthority, leaf: Leaf) -> bool:
        if not self.infers or leaf.kind in (Authority.CREDENTIAL, Authority.COUNTERPARTY, Authority.COMMAND):
            return False
        if leaf.kind in _DESTINATIONS and tool.effect is EffectKind.SPEND:
            return False
        return tool.effect is not EffectKind.DELETE or self.memory.has_words

    def _in_record(self, leaf: Leaf, value: str, effect: EffectKind) -> bool:
        if leaf.kind in _DESTINATIONS:
            return leaf.closed is not False and self._resolves(leaf, value)
        keys = _AMOUNT_KEY if leaf.kind == Authority.AMOUNT else _ID_KEY
        return any(
            keys.search(key)
            and _same(found, value, leaf.kind)
            and (result.own or self._picks(result, record, key, effect))
            for result in self.memory.results
            if not result.is_text and (leaf.kind == Authority.AMOUNT or value in result.text)
            for record, key, found in result.leaves
            if is_short(found)
        )

    def _resolves(self, leaf: Leaf, value: str) -> bool:
        """A name in a closed namespace that the user said in part, if it is the only one that fits. Anybody can
        register an address, so that names of people never lead to one."""
        mine = self._proper(value)
        if not mine or (is_address(value) and leaf.closed is not True):
            return False
        rivals = set()
        found = False
        for result in self.memory.results:
            if result.is_text:
                continue
            short = [canonical(each) for *_, each in result.leaves if is_short(each)]
            found = found or value in short
            rivals |= {each for each in short if is_address(each) == is_address(value) and self._proper(each) & mine}
        return found and len(rivals) == 1

    def _proper(self, value: str) -> set[str]:
        return self.memory.names & words(value.split("@")[0])

    def _picks(self, result: KeptResult, record: Record, but: str, effect: EffectKind) -> bool:
        """Whether the record answers a query in the user's words, or the user named it; what is to be deleted, by its
        own title."""
        memory = self.memory
        if any(len(asked) > 2 and not asked.isdigit() and holds(memory.request, asked) for asked in result.asked()):
            return True
        for key, leaves in record.items():
            if key == but or (effect is EffectKind.DELETE and not _TITLE_KEY.search(key)):
                continue
            for leaf in filter(is_short, leaves):
                named = memory.request_words & words(fold(leaf))
                if len(named) > 1 or (named and len(leaf.split()) == 1):
                    return True
                if LINK.fullmatch(leaf) and holds(memory.request, canonical(leaf)):
                    return True
        return False

    def siblings(self, value: str) -> set[str]:
        """The other entries of the lists in which a value stands: what a yes for the list covers."""
        found: set[str] = set()
        for result in self.memory.results:
            if result.own or result.is_text or value not in result.text:
                continue
            for key in {key for _, key, leaf in result.leaves if canonical(leaf) == value}:
                found |= {canonical(leaf) for _, name, leaf in result.leaves if name == key and is_short(leaf)}
        return found - {value}


_KNOWABLE = frozenset((Authority.DESTINATION, Authority.HOST, Authority.COUNTERPARTY))


def _called_an_id(request: str, value: str) -> bool:
    """A short id counts only where the user calls it one."""
    return re.search(rf"(?:\bids?|#|\bnumber|\bno\.?)\W{{0,3}}{re.escape(value)}\b", request) is not None


def _same(found: str, value: str, kind: str) -> bool:
    if kind == Authority.AMOUNT:
        return number(found) is not None and number(found) == number(value)
    return canonical(found) == value
