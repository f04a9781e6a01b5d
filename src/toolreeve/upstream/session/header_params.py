"""Which arguments of a tool are repeated in headers? Those that its schema marks with `x-mcp-header`.

Only what is reached from the top through `properties` alone can be marked, for only that has one place in the
arguments. A schema with a wrong mark has no marks at all: the two sides would not agree on them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]

_MARK = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KINDS = ("string", "integer", "boolean")
# Where a schema holds further ones: as such, in a list, by name.
_ONE = frozenset(
    "items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties "
    "not if then else contentSchema".split()
)
_LISTED = frozenset("allOf anyOf oneOf prefixItems".split())
_NAMED = frozenset("patternProperties dependentSchemas $defs definitions".split())


class WrongMark(Exception):
    """Says what is wrong, and where."""


def read_marks(schema: Any) -> dict[Path, str]:
    """The header's name for each argument that is marked. Raises WrongMark."""
    marks: dict[Path, str] = {}
    taken: dict[str, Path] = {}
    for path, part in _parts(schema):
        if _MARK not in part:
            continue
        if not path:
            raise WrongMark(f"{_MARK} stands where no single argument is meant")
        name = _checked(path, part)
        if (other := taken.setdefault(name.lower(), path)) != path:
            raise WrongMark(f"{_MARK} {name!r} is on {_shown(path)} and on {_shown(other)}")
        marks[path] = name
    return marks


def _checked(path: Path, part: Mapping[str, Any]) -> str:
    name, kind = part[_MARK], part.get("type")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise WrongMark(f"{_MARK} on {_shown(path)} is no name that a header can have")
    if kind not in _KINDS:
        raise WrongMark(f"{_MARK} is on {_shown(path)}, which is not a {', '.join(_KINDS)}")
    return name


def _shown(path: Path) -> str:
    return repr(".".join(path))[:200]


def _parts(schema: Any) -> Iterator[tuple[Path | None, Mapping[str, Any]]]:
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
            elif keyword in _ONE:
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
