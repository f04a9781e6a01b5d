"""Judges a call by information flow: which values nobody vouches for.

Monotone in what it finds: findings only add questions, and one (a secret that would leave) denies. A value that cannot
be read counts as not vouched for.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolreeve.core.effects import EffectKind
from toolreeve.core.labels import Authority, Confidentiality, Provenance
from toolreeve.policy.flow.authority import LABEL, TEXT, WHEN, Leaf, ToolAuthority, TooManyValues
from toolreeve.policy.flow.intent import CREDENTIAL, asks_for
from toolreeve.policy.flow.matching import LINK, canonical, fold, holds, host_of
from toolreeve.policy.flow.memory import CONFIDENTIAL, SessionMemory, identifies
from toolreeve.policy.flow.origin import trace
from toolreeve.policy.flow.vouching import Vouching

UNASKED = "unasked"
PRIVATE = "private"
SECRET = "secret"  # noqa: S105 - a kind of finding
LINKED = "link"
DICTATED = "dictated"
_MOST_FINDINGS = 20
_DICTATED_WORDS = 3

_PLACES = (Authority.DESTINATION, Authority.HOST)

FindsSecret = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class FlowJudge:
    """`finds_secret` knows the secrets of the runtime."""

    memory: SessionMemory
    finds_secret: FindsSecret
    infers: bool = True

    @property
    def vouching(self) -> Vouching:
        return Vouching(self.memory, self.infers)

    def judge(self, tool: ToolAuthority, args: Mapping[str, Any]) -> list[Provenance]:
        """What needs a person, whether or not untrusted text was read; empty if everything is vouched for."""
        found: list[Provenance] = []
        try:
            found += self._effect(tool)
            for leaf in tool.leaves(args):
                found += self._leaf(tool, leaf)
                if len(found) >= _MOST_FINDINGS:
                    break
        except TooManyValues:
            found.append(_plain("", "arguments", "the arguments are too many to check each of them"))
        return found

    def secrets(self, tool: ToolAuthority, args: Mapping[str, Any]) -> list[Provenance]:
        """Secrets that the call would carry out."""
        try:
            leaves = list(tool.leaves(args))
        except TooManyValues:
            return [_plain("", SECRET, "the arguments are too many to check each of them for secrets")]
        return [
            Provenance(parameter=leaf.path, value="", kind=SECRET, why=f"{leaf.path} holds a secret", label=SECRET)
            for leaf in leaves
            if self._holds_secret(str(leaf.value))
        ]

    def _holds_secret(self, text: str) -> bool:
        if self.finds_secret(text):
            return text not in self.memory.exact
        folded = fold(text)
        return any(value in folded for value, _ in self.memory.confidential_values(Confidentiality.SECRET))

    def _effect(self, tool: ToolAuthority) -> Iterator[Provenance]:
        """What nobody asked for. Without the user's words, nobody asked for a deletion."""
        effect = CREDENTIAL if tool.identity else tool.effect
        deletes = tool.effect in (EffectKind.DELETE, EffectKind.SPEND)
        if not self.memory.has_words:
            if tool.effect is EffectKind.DELETE:
                yield _plain("", UNASKED, "nobody is known to have asked for a deletion")
            return
        asked = asks_for(self.memory.request, effect)
        if asked is False or (asked is None and deletes):
            yield _plain("", UNASKED, f"the request did not ask for this effect: {effect}")

    def _leaf(self, tool: ToolAuthority, leaf: Leaf) -> Iterator[Provenance]:
        match leaf.kind:
            case _ if leaf.kind == WHEN or leaf.kind == Authority.NONE:
                return
            case _ if leaf.kind in (TEXT, LABEL):
                yield from self._text(tool, leaf)
            case Authority.AMOUNT if tool.effect is not EffectKind.SPEND:
                return
            case _ if tool.effect is EffectKind.NET:
                yield from self._visit(tool, leaf)
            case _ if not self.vouching.vouches(tool, leaf):
                why = f"nobody vouches for this {leaf.kind}"
                yield trace(self.memory, parameter=leaf.path, value=str(leaf.value), kind=leaf.kind, why=why)

    def _visit(self, tool: ToolAuthority, leaf: Leaf) -> Iterator[Provenance]:
        url = str(leaf.value)
        if leaf.kind in _PLACES and not self.vouching.may_visit(tool, leaf.key, url):
            why = "an address that nobody named and that stands in nothing that was read: it can carry data out"
            yield trace(self.memory, parameter=leaf.path, value=url, kind=Authority.HOST, why=why)

    def _text(self, tool: ToolAuthority, leaf: Leaf) -> Iterator[Provenance]:
        text = str(leaf.value)
        if tool.goes_out:
            for link in LINK.findall(text):
                approved = (tool.name, leaf.key, canonical(link)) in self.memory.approved
                if not approved and not self.vouching.names_value(link):
                    why = "a link or address that nobody vouches for, in an outgoing text"
                    yield trace(self.memory, parameter=leaf.path, value=link, kind=LINKED, why=why)
            yield from self._private(leaf, fold(text))
        if leaf.kind == LABEL:
            yield from self._dictated(tool, leaf, text)

    def _private(self, leaf: Leaf, text: str) -> Iterator[Provenance]:
        if not identifies(text):
            return
        for value, result in self.memory.confidential_values(Confidentiality.PRIVATE):
            if value in text and not holds(self.memory.said, value):
                why = f"a private value of {result.tool} that the user did not name, in an outgoing text"
                yield trace(self.memory, parameter=leaf.path, value=value, kind=PRIVATE, why=why)
        if not self.memory.forgotten.isdisjoint(CONFIDENTIAL):
            why = "a number that may come from private data which is no longer kept, in an outgoing text"
            yield _plain(leaf.path, PRIVATE, why)

    def _dictated(self, tool: ToolAuthority, leaf: Leaf, text: str) -> Iterator[Provenance]:
        """A title of several words that was cut out of running text, which the user did not say."""
        spoken = fold(text).split()
        if len(spoken) < _DICTATED_WORDS or " ".join(spoken) in self.memory.said:
            return
        if (tool.name, leaf.key, canonical(text)) in self.memory.approved:
            return
        found = re.compile(r"(?:\s|\\[nrt])+".join(map(re.escape, spoken))).search
        for result in self.memory.results:
            if result.own or result.vouches or not found(result.text):
                continue
            if any(len(each) > len(text) + 8 and found(fold(each)) for *_, each in result.leaves):
                why = f"this {leaf.key} was dictated by a text that was read"
                yield trace(self.memory, parameter=leaf.path, value=text, kind=DICTATED, why=why)
                return


def approve(memory: SessionMemory, tool: ToolAuthority, args: Mapping[str, Any], infers: bool = True) -> None:  # noqa: FBT001, FBT002
    """A yes holds for these values of this tool in this session, and for the other entries of the lists that they come
    from; never so for deletions, money and credentials."""
    vouching = Vouching(memory, infers)
    widens = tool.effect in (EffectKind.SEND, EffectKind.WRITE) and not tool.identity
    try:
        leaves = list(tool.leaves(args))
    except TooManyValues:
        return
    for leaf in leaves:
        if leaf.kind in (TEXT, WHEN):
            links = [canonical(link) for link in LINK.findall(str(leaf.value))]
            memory.approved.update((tool.name, leaf.key, link) for link in links)
            continue
        value = canonical(leaf.value)
        if tool.effect is EffectKind.NET:
            memory.approved.add((tool.name, leaf.key, host_of(value)))
            continue
        is_new = not vouching.vouches(tool, leaf)
        memory.approved.add((tool.name, leaf.key, value))
        if widens and is_new and leaf.kind in (Authority.DESTINATION, Authority.HOST, Authority.OBJECT):
            memory.approved.update((tool.name, leaf.key, each) for each in vouching.siblings(value))


def _plain(parameter: str, kind: str, why: str) -> Provenance:
    return Provenance(parameter=parameter, value="", kind=kind, why=why, label="")


def requested(memory: SessionMemory, most: int = 120) -> str:
    """What the user had asked, for the question."""
    text = " ".join(memory.request_exact.split())
    if not memory.has_words:
        return ""
    return text if len(text) <= most else f"{text[: most - 1]}…"
