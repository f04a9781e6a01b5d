"""What changed about a tool? A few lines that a person can read, with nothing hidden in them.

Both definitions come from a server that may mean ill: everything is spelled out and bounded.
"""

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from toolreeve.core import json
from toolreeve.core.visible import visible
from toolreeve.remote.offers.pins import FIELDS, Changed, Definition

SHOWN_LINES = 60
SHOWN_WIDTH = 300
COMPARED_LINES = 2_000


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
            yield from _compared(_written(change.pinned, field), _written(change.offered, field))


def _written(definition: Definition, field: str) -> list[str]:
    value: Any = definition.get(field)
    if value is None:
        return []
    return (value if isinstance(value, str) else json.pretty(value)).split("\n")[:COMPARED_LINES]


def _compared(before: list[str], now: list[str]) -> Iterator[str]:
    for line in islice(difflib.unified_diff(before, now, lineterm="", n=1), 2, None):
        if not line.startswith("@@"):
            yield f"  {_cut(line)}"


def _cut(line: str) -> str:
    shown = visible(line[:SHOWN_WIDTH])
    return shown if len(line) <= SHOWN_WIDTH else f"{shown}⋯ ({len(line)} characters)"
