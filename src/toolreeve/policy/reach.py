"""Could an effect that reaches further than one path touch what a rule is about? For denies and asks, which take
suspicion for enough: `grep -r . .` reads every file below, so it may read the one that a rule names.

Patterns are compared component by component; where it cannot be told, the answer is yes.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from toolreeve.core.effects import Effect, Reach
from toolreeve.policy.conditions import absolute

ANY_DEPTH = "**"


def may_touch(effect: Effect, condition: Mapping[str, Any], root: str) -> bool:
    """Whether a path that the effect may reach could fit every part of the condition."""
    if effect.reach is Reach.NAMES:
        return False
    reached = effect.target.rstrip("/").split("/") + ([ANY_DEPTH] if effect.reach is Reach.BELOW else [])
    return all(_may_fit(reached, operator, value, root) for operator, value in condition.items())


def _may_fit(reached: Sequence[str], operator: str, value: Any, root: str) -> bool:
    match operator:
        case "equals" | "one_of":
            return any(_overlap(reached, _parts(place, root)) for place in _texts(value))
        case "under":
            return any(_overlap(reached, [*_parts(place, root), ANY_DEPTH]) for place in _texts(value))
        case "glob":
            return any(_overlap(reached, _parts(pattern, root)) for pattern in _texts(value))
        case _:
            return True


def _texts(value: Any) -> Iterable[str]:
    return [value] if isinstance(value, str) else [each for each in value if isinstance(each, str)]


def _parts(path: str, root: str) -> list[str]:
    return absolute(path, root).rstrip("/").split("/")


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether some path fits both patterns; `**` stands for any number of components."""
    if not one or not other:
        return all(part == ANY_DEPTH for part in (*one, *other))
    if one[0] == ANY_DEPTH:
        return _overlap(one[1:], other) or _overlap(one, other[1:])
    if other[0] == ANY_DEPTH:
        return _overlap(one, other[1:]) or _overlap(one[1:], other)
    return _may_be_same(one[0], other[0]) and _overlap(one[1:], other[1:])


def _may_be_same(one: str, other: str) -> bool:
    if not _is_pattern(one):
        return fnmatchcase(one, other) if _is_pattern(other) else one == other
    return True if _is_pattern(other) else fnmatchcase(other, one)


def _is_pattern(part: str) -> bool:
    return any(character in part for character in "*?[{")
