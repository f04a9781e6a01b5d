"""What changed about a tool? A few lines that a person can read, with nothing hidden in them.

Both definitions come from a server that may mean ill: everything is spelled out and bounded.
"""

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from toolreeve.core import json
from toolreeve.core.visible import visible
from toolreeve.remote.offers.pins import FIELDS, Changed

SHOWN_LINES = 60
WIDTH = 300
"""Longer lines are folded, so that a difference far to the right is seen as well."""
COMPARED_LINES = 2_000
"""Comparing takes the square of it. What is the same at the beginning and at the end does not count."""


def difference(change: Changed, *, lines: int = SHOWN_LINES) -> str:
    """The fields that differ, line by line: `-` was, `+` is offered now."""
    shown = list(islice(_lines(change), lines + 1))
    if len(shown) > lines:
        shown[lines:] = ["⋯ more differences than are shown here ⋯"]
    return "\n".join(shown)


def _lines(change: Changed) -> Iterator[str]:
    for field in FIELDS:
        before, now = change.pinned.get(field), change.offered.get(field)
        if before != now:
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
