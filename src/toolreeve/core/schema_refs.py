"""Unresolved references in a JSON Schema, located and explained.

The validator names the missing target, not the keyword that refers to it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_FIXES = {
    "$ref": "define it below $defs, because nothing is fetched",
    "$dynamicRef": "define it below $defs, because nothing is fetched",
    "$schema": "leave it out, or name a published draft",
    "$id": "leave it out, or give a URI",
}
_NAMED = re.compile("'(.*)'")


def explain_unresolved(document: Mapping[str, Any], message: str) -> tuple[tuple[str | int, ...], str]:
    """The path of the first keyword that `message` is about, and the fix; an empty path and `message` if none is."""
    named = _NAMED.search(message)
    for path, value in _references(document):
        if named and value.endswith(named[1]):
            return path, f"{value!r:.200} cannot be resolved; fix: {_FIXES[str(path[-1])]}"
    return (), message


def _references(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    left: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while left:
        path, node = left.pop()
        items = node.items() if isinstance(node, Mapping) else enumerate(node)
        for key, value in items:
            if isinstance(value, str) and key in _FIXES:
                yield (*path, key), value
            elif isinstance(value, Mapping | list | tuple):
                left.append(((*path, key), value))
