"""Where does a schema refer to what is not there? The validator names what it missed, and not who asked for it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_MENDS = {
    "$ref": "define it below $defs, for nothing is fetched",
    "$dynamicRef": "define it below $defs, for nothing is fetched",
    "$schema": "leave it out, or name a published draft",
    "$id": "leave it out, or give a URI",
}
_NAMED = re.compile("'(.*)'")


def misreferred(document: Mapping[str, Any], message: str) -> tuple[tuple[str | int, ...], str]:
    """The path of the first keyword that `message` is about, and what to do; no path and the message if none is."""
    named = _NAMED.search(message)
    for path, value in _references(document):
        if named and value.endswith(named[1]):
            return path, f"{value!r:.200} cannot be resolved; fix: {_MENDS[str(path[-1])]}"
    return (), message


def _references(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    left: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while left:
        path, node = left.pop()
        items = node.items() if isinstance(node, Mapping) else enumerate(node)
        for key, value in items:
            if isinstance(value, str) and key in _MENDS:
                yield (*path, key), value
            elif isinstance(value, Mapping | list | tuple):
                left.append(((*path, key), value))
