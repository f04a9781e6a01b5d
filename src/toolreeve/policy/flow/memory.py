"""Bounded memory of a session: what it read and its user said.

Results are kept as they came; they are folded and parsed only when a side effect is judged. Forgetting takes support
away, so it asks more, never less: that untrusted text was read is remembered, and so is that private or secret data was
forgotten, which makes every number that could be a part of it ask.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolreeve.core import json
from toolreeve.core.labels import Confidentiality, Integrity, Labels
from toolreeve.policy.flow.matching import COMMON, WORD, canonical, fold, is_short
from toolreeve.policy.flow.sources import ToolSource

MOST_CHARS = 4 << 20
MOST_RESULTS = 1_000
MOST_NESTED = 64
"""Results of nested structure: their size is only estimated, so that they are counted as well."""
_UNTRUSTED = Integrity.UNTRUSTED
CONFIDENTIAL = (Confidentiality.PRIVATE, Confidentiality.SECRET)
_FLAT = 16
_DEPTH = 24
_PARSED = 20_000
"""Leaves of one result; a larger one vouches for nothing beyond them."""
_IDENTIFIER = re.compile(r"\d(?:[ -]?\d){4,}")
_LONG_WORD = re.compile(r"[^\s\"',;=:]{8,}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?")
_QUOTED = re.compile(r"(?ms)^```.*?^```|^~~~.*?^~~~|^[ \t]*>.*?$")
_FORWARDED = re.compile(r"(?im)^[ \t]*(?:-{3,} ?(?:original|forwarded) message|from: .+\n(?:sent|date|to|subject): )")
_PROPER = re.compile(r"(?<![.!?:\n] )(?<!^)\b[^\W\d_a-z]\w+|'[^'\n]{3,60}'|\"[^\"\n]{3,60}\"")
_JOINED = re.compile(r"(?<=[a-z])\.(?=[A-Z])")
_FOLLOW_UP = 3
"""A message of so few words goes on with the request before it."""

Record = Mapping[str, list[str]]


class KeptResult:
    """One result, as it came. `own` is the answer of a side effect that was carried out."""

    __slots__ = (
        "_leaves",
        "_records",
        "_text",
        "args",
        "at",
        "call_id",
        "is_text",
        "nested",
        "own",
        "raw",
        "size",
        "source",
        "tool",
    )

    def __init__(
        self, call_id: str, tool: str, args: Mapping[str, Any], raw: Any, source: ToolSource, *, own: bool, at: float
    ) -> None:
        self.call_id = call_id
        self.tool = tool
        self.args = args
        self.raw = raw
        self.source = source
        self.own = own
        self.at = at
        self.is_text = isinstance(raw, str)
        self.size, self.nested = _measure(raw)
        self._text: str | None = None
        self._records: list[Record] | None = None
        self._leaves: list[tuple[Record, str, str]] | None = None

    @property
    def labels(self) -> Labels:
        return self.source.labels

    @property
    def vouches(self) -> bool:
        return self.labels.integrity is not Integrity.UNTRUSTED

    @property
    def text(self) -> str:
        """Everything in it, folded."""
        if self._text is None:
            whole = self.raw if isinstance(self.raw, str) else _dump(self.raw)
            self._text = fold(whole).replace("www.", "")
        return self._text

    @property
    def records(self) -> list[Record]:
        """Its structured records; a plain text has none, whatever it looks like."""
        if self._records is None:
            self._records = [] if self.is_text else list(_records(self.raw))
        return self._records

    @property
    def leaves(self) -> list[tuple[Record, str, str]]:
        if self._leaves is None:
            found = [
                (record, key, leaf) for record in self.records for key, leaves in record.items() for leaf in leaves
            ]
            if self.is_text:
                found = [({"": [self.raw]}, "", self.raw)]
            self._leaves = found[:_PARSED]
        return self._leaves

    @property
    def has_prose(self) -> bool:
        return any(not is_short(leaf) for *_, leaf in self.leaves) or len(self.leaves) >= _PARSED

    def confidential_values(self) -> set[str]:
        """Of secret results every long word, of others the short fields with a number that identifies."""
        if self.labels.confidentiality is Confidentiality.SECRET:
            return {word for word in _LONG_WORD.findall(self.text) if len(set(word)) > _FOLLOW_UP}
        return {fold(leaf) for *_, leaf in self.leaves if is_short(leaf) and identifies(leaf)}

    def asked(self) -> list[str]:
        """The values of its arguments, folded."""
        return [fold(value) for value in _scalars(self.args)]


class SessionMemory:
    """`words` are the user's messages. Without any, the arguments of the calls before the first untrusted result stand
    in for them: nothing hostile can have shaped those."""

    def __init__(self, *, own: Iterable[str] = (), limit: int = MOST_CHARS) -> None:
        self.results: deque[KeptResult] = deque()
        self.own = {canonical(each) for each in own}
        self.has_words = False
        self.said = ""
        self.exact = ""
        self.request = ""
        self.request_exact = ""
        self.names: set[str] = set()
        self.request_words: set[str] = set()
        self.trusted: set[str] = set()
        self.trusted_calls: set[str] = set()
        self.approved: set[tuple[str, str, str]] = set()
        self.known: set[tuple[str, str, str]] = set()
        self.forgotten: set[Confidentiality] = set()
        self._limit = limit
        self.size = 0
        self.foreign_count = 0
        self._nested = 0
        self._untrusted = False
        self._unsettled: list[KeptResult] = []

    def say(self, text: str) -> None:
        """A message of the user. Quoted and forwarded text in it is of others."""
        mine = _JOINED.sub(". ", own_words(text))
        goes_on = self.has_words and len(mine.split()) <= _FOLLOW_UP
        self.has_words = True
        self.request_exact = f"{self.request_exact}\n{mine}" if goes_on else mine
        self.exact = f"{self.exact}\n{mine}"[-MOST_CHARS:]
        self.said = fold(self.exact).replace("www.", "")
        self.request = fold(self.request_exact).replace("www.", "")
        proper = " ".join(_PROPER.findall(self.request_exact))
        self.names = set(WORD.findall(fold(proper))) - COMMON
        self.request_words = set(WORD.findall(self.request)) - COMMON

    def keep(self, result: KeptResult) -> None:
        """Constant work, whatever the size of the result, until the bound is reached."""
        if not self.has_words and not self._untrusted:
            self._take_as_said(result)
        self.results.append(result)
        self.size += result.size
        self._nested += result.nested
        if result.source.labels.integrity is _UNTRUSTED:
            self._untrusted = True
            self.foreign_count += result.source.is_foreign
        elif not self._untrusted and result.source.declared:
            self._unsettled.append(result)
        if self.size > self._limit or len(self.results) > MOST_RESULTS or self._nested > MOST_NESTED:
            self._forget(self._limit)

    def mark_untrusted(self) -> None:
        """Untrusted text was read in this session, by another process or before what is kept."""
        self._untrusted = True

    @property
    def has_read_untrusted(self) -> bool:
        """Sticky. A declared source counts if there is prose in what it returned."""
        if not self._untrusted and self._unsettled:
            self._untrusted = any(result.has_prose for result in self._unsettled)
            self._unsettled.clear()
        return self._untrusted

    def confidential_values(self, level: Confidentiality) -> Iterator[tuple[str, KeptResult]]:
        """Values of results at this level that a text could carry out, folded, with where they stand."""
        for result in self.results:
            if result.labels.confidentiality is level:
                for value in result.confidential_values():
                    yield value, result

    def _take_as_said(self, result: KeptResult) -> None:
        asked = "\n".join(str(value) for value in _scalars(result.args))[:10_000]
        if asked and f"\n{asked}\n" not in f"{self.exact}\n":  # a repeated call says nothing new
            self.exact = f"{self.exact}\n{asked}"[-65_536:]
            self.request_exact = self.exact
            self.said = self.request = fold(self.exact).replace("www.", "")
            self.names = self.request_words = set(WORD.findall(self.said)) - COMMON

    def forget_results(self) -> None:
        """Drop all results that are kept. What the user said and approved stays."""
        self._forget(0)

    def _forget(self, limit: int) -> None:
        while self.results and (self.size > limit or len(self.results) > MOST_RESULTS or self._nested > MOST_NESTED):
            old = self.results.popleft()
            self.size -= old.size
            self._nested -= old.nested
            self.foreign_count -= old.source.is_foreign
            self.forgotten.add(old.source.labels.confidentiality)


def identifies(text: str) -> bool:
    """Whether a text holds a number that identifies somebody or something; a date does not."""
    return _IDENTIFIER.search(_MOMENT.sub("", text)) is not None


def own_words(text: str) -> str:
    """The message without quoted blocks and without a forwarded mail."""
    forwarded = _FORWARDED.search(text)
    return _QUOTED.sub("", text if forwarded is None else text[: forwarded.start()])


def _records(value: Any) -> Iterator[Record]:
    """Every object in it, with the plain values directly in it, by name."""
    waiting = [value]
    count = 0
    while waiting and count < _PARSED:
        inner = waiting.pop()
        count += 1
        if isinstance(inner, Mapping):
            record: dict[str, list[str]] = {}
            for key, item in inner.items():
                items = item if isinstance(item, list | tuple) else [item]
                record[str(key)] = [str(each) for each in items if _is_plain(each)]
                waiting.extend(each for each in items if not _is_plain(each))
            yield record
        elif isinstance(inner, list | tuple):
            plain = [str(each) for each in inner if _is_plain(each)]
            if plain:
                yield {"": plain}
            waiting.extend(each for each in inner if not _is_plain(each))
        else:
            yield {"": [str(inner)]}


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Mapping | list | tuple)


def _scalars(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _scalars(inner, depth + 1) if depth < _DEPTH else ()
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _scalars(inner, depth + 1) if depth < _DEPTH else ()
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _dump(value: Any) -> str:
    try:
        return json.dumps(value).decode()
    except (TypeError, ValueError):  # what JSON cannot hold
        return str(value)


def _measure(value: Any) -> tuple[int, bool]:
    """Its characters, and whether that is only an estimate because it is nested."""
    if isinstance(value, str):
        return len(value), False
    if not isinstance(value, Mapping) or len(value) > _FLAT:
        return 1024, True
    size = 64
    for inner in value.values():
        if isinstance(inner, str):
            size += len(inner)
        elif isinstance(inner, Mapping | list | tuple):
            return size + 1024, True
    return size, False
