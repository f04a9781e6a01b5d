"""Overlap between the paths of an effect and those of a rule.

For denies and asks, where suspicion is enough: `grep -r . .` reads every file below, so it may read the one that a rule
names. Patterns are compared component by component; if in doubt, the answer is yes.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from toolreeve.core.effects import Effect, Reach
from toolreeve.policy.conditions import absolute

ANY_DEPTH = "**"


def may_touch(effect: Effect, condition: Mapping[str, Any], root: str) -> bool:
    """Whether some path that the effect may reach could meet every part of the condition."""
    if effect.reach is Reach.NAMES:
        return False
    reached = effect.target.rstrip("/").split("/")
    if effect.reach is Reach.BELOW:
        reached.append(ANY_DEPTH)
    return all(_may_fit(reached, operator, value, root) for operator, value in condition.items())


def _may_fit(reached: Sequence[str], operator: str, value: Any, root: str) -> bool:
    match operator:
        case "equals" | "one_of":
            return any(_overlap(reached, _parts(path, root)) for path in _texts(value))
        case "under":
            return any(_overlap(reached, [*_parts(path, root), ANY_DEPTH]) for path in _texts(value))
        case "glob":
            return any(_overlap(reached, _parts(pattern, root)) for pattern in _texts(value))
        case _:
            return True


def _texts(value: Any) -> Iterable[str]:
    return [value] if isinstance(value, str) else [each for each in value if isinstance(each, str)]


def _parts(path: str, root: str) -> list[str]:
    return absolute(path, root).rstrip("/").split("/")


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether some path matches both patterns; `**` stands for any number of components."""
    fits = _overlaps_from_end(other)
    for part in reversed(one):
        fits = _with_part(part, other, fits)
    return fits[0]


def _overlaps_from_end(other: Sequence[str]) -> list[bool]:
    """For each tail of the pattern, whether it matches the empty path."""
    fits = [True]
    for part in reversed(other):
        fits.append(fits[-1] and part == ANY_DEPTH)
    return fits[::-1]


def _with_part(part: str, other: Sequence[str], rest: list[bool]) -> list[bool]:
    """For each tail of the other pattern, whether it may match `part` and `rest`; `rest` answers without it."""
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
    """Whether one name may match both globs."""
    if not _is_pattern(one):
        return fnmatchcase(one, other) if _is_pattern(other) else one == other
    if not _is_pattern(other):
        return fnmatchcase(other, one)
    return _may_begin_alike(one, other) and _may_begin_alike(_mirrored(one), _mirrored(other))


def _may_begin_alike(one: str, other: str) -> bool:
    """Whether the literal text before the first wildcard of either agrees."""
    for left, right in zip(one, other, strict=False):
        if left in WILD or right in WILD:
            return True
        if left != right:
            return False
    return True


def _mirrored(pattern: str) -> str:
    return pattern[::-1].translate(_MIRROR)


WILD = "*?[{"
_MIRROR = str.maketrans("[]{}", "][}{")


def _is_pattern(part: str) -> bool:
    return any(character in part for character in WILD)
