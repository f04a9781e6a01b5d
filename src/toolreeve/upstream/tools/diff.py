"""Differences between a pinned and an offered tool definition.

Both definitions come from a server that may be hostile: the text for people is escaped and bounded, and a model gets
only the changed places, not a word of what is offered now, before a person has accepted it.
"""

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from toolreeve.core import json
from toolreeve.core.visible import one_line, visible
from toolreeve.upstream.tools.pins import FIELDS, ToolChanged, canonical_json

MAX_LINES = 60
WIDTH = 300
"""Longer lines are folded, so that a difference far to the right is visible as well."""
MAX_COMPARED = 2_000
"""Lines; comparing is quadratic. Lines that are equal at the beginning and at the end do not count."""
MAX_PLACES = 12
MAX_DEPTH = 3
MAX_KEY = 60


def difference(change: ToolChanged, *, lines: int = MAX_LINES) -> str:
    """The fields that differ, line by line: `-` was, `+` is offered now."""
    shown = list(islice(_lines(change), lines + 1))
    if len(shown) > lines:
        shown[lines:] = ["⋯ more differences than are shown here ⋯"]
    return "\n".join(shown)


def changed_places(change: ToolChanged) -> tuple[str, ...]:
    """Where it differs, such as `inputSchema.properties.path`, in names that were known before: a new key could say
    anything, so the place that it was put into is named instead."""
    found: dict[str, None] = {}
    for field in FIELDS:
        for place in _places(field, change.pinned.get(field), change.offered.get(field), 1):
            found[place] = None
            if len(found) > MAX_PLACES:
                return (*list(found)[:MAX_PLACES], "…")
    return tuple(found)


def _places(place: str, before: Any, now: Any, depth: int) -> Iterator[str]:
    if canonical_json(before) == canonical_json(now):
        return
    if depth == MAX_DEPTH or not (isinstance(before, Mapping) and isinstance(now, Mapping)) or now.keys() - before:
        yield place
        return
    for key in before:
        yield from _places(f"{place}.{one_line(key)[:MAX_KEY]}", before[key], now.get(key), depth + 1)


def _lines(change: ToolChanged) -> Iterator[str]:
    for field in FIELDS:
        before = change.pinned.get(field)
        now = change.offered.get(field)
        if canonical_json(before) != canonical_json(now):
            yield f"{field}:"
            yield from _compare(_folded_lines(before), _folded_lines(now))


def _folded_lines(value: Any) -> list[str]:
    if value is None:
        return []
    text = value if isinstance(value, str) else json.pretty(value)
    return [part for line in text.split("\n") for part in _fold(line)]


def _fold(line: str) -> list[str]:
    return [line[start : start + WIDTH] for start in range(0, max(len(line), 1), WIDTH)]


def _compare(before: list[str], now: list[str]) -> Iterator[str]:
    before, now = _without_common_ends(before, now)
    compared = (before[:MAX_COMPARED], now[:MAX_COMPARED])
    for line in islice(difflib.unified_diff(*compared, lineterm="", n=1), 2, None):
        if not line.startswith("@@"):
            yield f"  {visible(line)}"
    left = max(len(before), len(now)) - MAX_COMPARED
    if left > 0:
        yield f"  ⋯ {left} more lines, too many to compare ⋯"


def _without_common_ends(before: list[str], now: list[str]) -> tuple[list[str], list[str]]:
    """Without the lines that are equal at both ends, except one next to the difference."""
    shorter = min(len(before), len(now))
    head = next((index for index in range(shorter) if before[index] != now[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if before[-1 - index] != now[-1 - index]), rest)
    start = max(head - 1, 0)
    end = max(tail - 1, 0)
    return before[start : len(before) - end], now[start : len(now) - end]
