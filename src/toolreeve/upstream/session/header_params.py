"""Finds the tool arguments that a schema mirrors in headers (`x-mcp-header`).

Only a schema that is reached from the top through `properties` alone can be marked, for only that has one place in the
arguments. A schema with an invalid mark has no header params at all: the two sides would not agree on them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]

_KEYWORD = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES = ("string", "integer", "boolean")
# Keywords that hold subschemas: directly, in a list, by name.
_DIRECT = frozenset(
    "items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties "
    "not if then else contentSchema".split()
)
_LISTED = frozenset("allOf anyOf oneOf prefixItems".split())
_NAMED = frozenset("patternProperties dependentSchemas $defs definitions".split())


class InvalidHeaderParam(Exception):
    """Says what is wrong, and where."""


def read_header_params(schema: Any) -> dict[Path, str]:
    """The header's name for each marked argument. Raises InvalidHeaderParam."""
    found: dict[Path, str] = {}
    taken: dict[str, Path] = {}
    for path, part in _subschemas(schema):
        if _KEYWORD not in part:
            continue
        if not path:
            raise InvalidHeaderParam(f"{_KEYWORD} is not on a single argument")
        name = _checked_name(path, part)
        other = taken.setdefault(name.lower(), path)
        if other != path:
            raise InvalidHeaderParam(f"{_KEYWORD} {name!r} is on both {_shown(path)} and {_shown(other)}")
        found[path] = name
    return found


def _checked_name(path: Path, part: Mapping[str, Any]) -> str:
    name = part[_KEYWORD]
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidHeaderParam(f"{_KEYWORD} on {_shown(path)} is not a valid header name")
    if part.get("type") not in _TYPES:
        raise InvalidHeaderParam(f"{_KEYWORD} is on {_shown(path)}, whose type is not one of {', '.join(_TYPES)}")
    return name


def _shown(path: Path) -> str:
    return repr(".".join(path))[:200]


def _subschemas(schema: Any) -> Iterator[tuple[Path | None, Mapping[str, Any]]]:
    """Every schema within a schema, with its path of arguments; None where it has none. References are not followed."""
    waiting: list[tuple[Path | None, Any]] = [((), schema)]
    while waiting:
        path, part = waiting.pop()
        if not isinstance(part, Mapping):
            continue
        yield path, part
        for keyword, value in part.items():
            if keyword == "properties" and isinstance(value, Mapping):
                waiting += [(None if path is None else (*path, name), each) for name, each in value.items()]
            elif keyword in _DIRECT:
                waiting.append((None, value))
            elif keyword in _LISTED and isinstance(value, list):
                waiting += [(None, each) for each in value]
            elif keyword in _NAMED and isinstance(value, Mapping):
                waiting += [(None, each) for each in value.values()]


def value_at(arguments: Mapping[str, Any], path: Path) -> Any:
    """None where there is no such argument."""
    found: Any = arguments
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
