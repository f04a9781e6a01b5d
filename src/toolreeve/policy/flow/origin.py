"""Where a value stands in what was read, for questions.

The search is loose and its answer is only shown: no decision depends on finding something in untrusted text. Excerpts
are foreign text: short, escaped, and never part of a sentence of ours.
"""

from toolreeve.core.labels import Provenance
from toolreeve.core.visible import one_line
from toolreeve.policy.flow.matching import canonical, fold, holds, loosen
from toolreeve.policy.flow.memory import KeptResult, SessionMemory

EXCERPT = 80
_MOST_VALUE = 200


def trace(memory: SessionMemory, *, parameter: str, value: str, kind: str, why: str) -> Provenance:
    """The provenance of a value, newest place first."""
    wanted = canonical(value)
    result = find_origin(memory, wanted)
    lookalike = find_lookalike(memory, wanted)
    shown = one_line(value[:_MOST_VALUE])
    if result is None:
        return Provenance(parameter=parameter, value=shown, kind=kind, why=why, label="", lookalike=lookalike)
    field, excerpt = _place(result, wanted)
    return Provenance(
        parameter=parameter,
        value=shown,
        kind=kind,
        why=why,
        source=result.tool,
        field=one_line(field[:60]),
        label=result.labels.integrity.value,
        call_id=result.call_id,
        at=result.at,
        excerpt=excerpt,
        lookalike=lookalike,
    )


def find_origin(memory: SessionMemory, value: str) -> KeptResult | None:
    for result in reversed(memory.results):
        if holds(result.text, value):
            return result
    loose = loosen(value)
    return next((result for result in reversed(memory.results) if holds(loosen(result.text), loose)), None)


def find_lookalike(memory: SessionMemory, value: str) -> str:
    """A value of the user's words that looks the same and is another, or differs by one character."""
    if len(value) < 5 or holds(memory.said, value):
        return ""
    loose = loosen(value)
    for word in set(memory.said.split()):
        candidate = canonical(word)
        is_near = abs(len(candidate) - len(value)) <= 1 and candidate != value
        if is_near and (loosen(candidate) == loose or _differs_by_one(candidate, value)):
            return one_line(candidate[:_MOST_VALUE])
    return ""


def _differs_by_one(one: str, other: str) -> bool:
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    if len(one) == len(other):
        return one[start + 1 :] == other[start + 1 :]
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[start + 1 :] == shorter[start:]


def _place(result: KeptResult, value: str) -> tuple[str, str]:
    """The field, and the text around the value."""
    for _, key, leaf in result.leaves:
        if value in fold(leaf).replace("www.", ""):
            return key, _around(leaf, value)
    for _, key, leaf in result.leaves:
        if loosen(value) in loosen(leaf):
            return key, _around(leaf, value)
    return "", _around(result.text, value)


def _around(text: str, value: str) -> str:
    at = fold(text).find(value)
    start = max(0, at - (EXCERPT - len(value)) // 2) if at >= 0 else 0
    cut = text[start : start + EXCERPT]
    return f"{'…' if start else ''}{one_line(cut)}{'…' if start + EXCERPT < len(text) else ''}"
