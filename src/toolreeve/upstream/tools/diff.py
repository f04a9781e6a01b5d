"""What changed about a tool? A few lines that a person can read, with nothing hidden in them; for models, only where.

Both definitions come from a server that may mean ill: everything is spelled out and bounded, and of what is offered now
not a word goes to a model before a person has accepted it.
"""

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from toolreeve.core import json
from toolreeve.core.visible import one_line, visible
from toolreeve.upstream.tools.pins import FIELDS, ToolChanged, spelled

SHOWN_LINES = 60
WIDTH = 300
"""Longer lines are folded, so that a difference far to the right is seen as well."""
COMPARED_LINES = 2_000
"""Comparing takes the square of it. What is the same at the beginning and at the end does not count."""
MOST_PARTS = 12
DEEPEST_PART = 3
LONGEST_KEY = 60


def difference(change: ToolChanged, *, lines: int = SHOWN_LINES) -> str:
    """The fields that differ, line by line: `-` was, `+` is offered now."""
    shown = list(islice(_lines(change), lines + 1))
    if len(shown) > lines:
        shown[lines:] = ["⋯ more differences than are shown here ⋯"]
    return "\n".join(shown)


def parts(change: ToolChanged) -> tuple[str, ...]:
    """Where it differs, such as `inputSchema.properties.path`, in words that were known before: a key that is new could
    say anything, so the place that it was put into is named instead."""
    found = (part for field in FIELDS for part in _parts(field, change.pinned.get(field), change.offered.get(field), 1))
    named = list(islice(dict.fromkeys(found), MOST_PARTS + 1))
    return tuple(named[:MOST_PARTS] + ["…"] * (len(named) > MOST_PARTS))


def _parts(place: str, before: Any, now: Any, depth: int) -> Iterator[str]:
    if spelled(before) == spelled(now):
        return
    if depth == DEEPEST_PART or not (isinstance(before, Mapping) and isinstance(now, Mapping)) or now.keys() - before:
        yield place
        return
    for key in before:
        yield from _parts(f"{place}.{one_line(key)[:LONGEST_KEY]}", before[key], now.get(key), depth + 1)


def _lines(change: ToolChanged) -> Iterator[str]:
    for field in FIELDS:
        before, now = change.pinned.get(field), change.offered.get(field)
        if spelled(before) != spelled(now):
            yield f"{field}:"
            yield from _compared(_written(before), _written(now))


def _written(value: Any) -> list[str]:
    if value is None:
        return []
    text = value if isinstance(value, str) else json.pretty(value)
    return [part for line in text.split("\n") for part in _folded(line)]


def _folded(line: str) -> list[str]:
    return [line[start : start + WIDTH] for start in range(0, max(len(line), 1), WIDTH)]


def _compared(before: list[str], now: list[str]) -> Iterator[str]:
    before, now = _without_common(before, now)
    shown = (before[:COMPARED_LINES], now[:COMPARED_LINES])
    for line in islice(difflib.unified_diff(*shown, lineterm="", n=1), 2, None):
        if not line.startswith("@@"):
            yield f"  {visible(line)}"
    if (left := max(len(before), len(now)) - COMPARED_LINES) > 0:
        yield f"  ⋯ {left} more lines, too many to compare ⋯"


def _without_common(before: list[str], now: list[str]) -> tuple[list[str], list[str]]:
    """Without the lines that are the same at both ends, but for one beside the difference."""
    shorter = min(len(before), len(now))
    head = next((index for index in range(shorter) if before[index] != now[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if before[-1 - index] != now[-1 - index]), rest)
    start, end = max(head - 1, 0), max(tail - 1, 0)
    return before[start : len(before) - end], now[start : len(now) - end]
