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
    fits = _overlaps_from_end(other)
    for part in reversed(one):
        fits = _with_part(part, other, fits)
    return fits[0]


def _overlaps_from_end(other: Sequence[str]) -> list[bool]:
    """For each tail of the pattern, whether it fits nothing at all."""
    fits = [True]
    for part in reversed(other):
        fits.append(fits[-1] and part == ANY_DEPTH)
    return fits[::-1]


def _with_part(part: str, other: Sequence[str], rest: list[bool]) -> list[bool]:
    """For each tail of the other pattern, whether it may fit `part` and what follows; `rest` answers for that alone."""
    fits = [False] * len(rest)
    fits[-1] = part == ANY_DEPTH and rest[-1]
    for at in range(len(other) - 1, -1, -1):
        if part == ANY_DEPTH:
            fits[at] = rest[at] or fits[at + 1]
        elif other[at] == ANY_DEPTH:
            fits[at] = fits[at + 1] or rest[at]
        else:
            fits[at] = rest[at + 1] and may_be_same(part, other[at])
    return fits


def may_be_same(one: str, other: str) -> bool:
    """Whether one name may fit both globs."""
    if not _is_pattern(one):
        return fnmatchcase(one, other) if _is_pattern(other) else one == other
    if not _is_pattern(other):
        return fnmatchcase(other, one)
    return _may_begin_alike(one, other) and _may_begin_alike(_mirrored(one), _mirrored(other))


def _may_begin_alike(one: str, other: str) -> bool:
    """Whether what is written out before the first wildcard of either agrees."""
    for mine, its in zip(one, other, strict=False):
        if mine in WILD or its in WILD:
            return True
        if mine != its:
            return False
    return True


def _mirrored(pattern: str) -> str:
    return pattern[::-1].translate(_MIRROR)


WILD = "*?[{"
_MIRROR = str.maketrans("[]{}", "][}{")


def _is_pattern(part: str) -> bool:
    return any(character in part for character in WILD)
