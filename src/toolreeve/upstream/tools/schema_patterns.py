"""Which patterns of a schema from elsewhere are tried here? Those that any text is matched against in linear time.

A server may write a pattern that takes hours for a text of a few letters, and everybody would wait for it. What is left
out here is not checked here; the server that wrote it checks it itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs

from toolreeve.core.errors import ToolreeveError

MOST = 100
"""So many patterns of one schema are tried; compiling takes its time, too."""
MOST_LARGE = 5
LONGEST = 2_000
_SIZE = 1 << 18
_LINEAR = jsonschema_rs.RegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
_ANY = jsonschema_rs.FancyRegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_VALUES = frozenset({"const", "enum", "default", "examples"})
_REST = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})
"""What can only be judged together."""


def checkable(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without the patterns that are not tried; the very same one if it has none of those.

    Raises ToolreeveError for a pattern that is none.
    """
    found = set(_patterns(document))
    looked_at = [each for each in sorted(found, key=len)[:MOST] if len(each) <= LONGEST]
    tried = {each for each in looked_at if _compiles(each, _LINEAR)}
    if found <= tried:
        return document
    _refuse_broken([each for each in looked_at if each not in tried and not _compiles(each, _ANY)])
    cleaned: dict[str, Any] = _without(document, tried)
    return cleaned


@lru_cache(maxsize=1024)
def _compiles(pattern: str, how: Any) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, offline=True, pattern_options=how)
    except ValueError:
        return False
    return True


def _refuse_broken(doubtful: Sequence[str]) -> None:
    """A pattern that does not compile may only be large; finding out takes long."""
    if len(doubtful) > MOST_LARGE:
        raise ToolreeveError(f"not usable: more than {MOST_LARGE} of its patterns are very large, or none")
    for pattern in doubtful:
        if not _compiles(pattern, None):
            raise ToolreeveError(f"not usable: {pattern[:100]!a} is no pattern")


def _patterns(node: Any) -> Iterator[str]:
    """Of a schema and all that are in it."""
    if isinstance(node, list):
        for each in node:
            yield from _patterns(each)
    elif isinstance(node, dict):
        if isinstance(pattern := node.get("pattern"), str):
            yield pattern
        if isinstance(named := node.get("patternProperties"), dict):
            yield from named
        for key, value in node.items():
            yield from _within(key, value)


def _within(key: str, value: Any) -> Iterator[str]:
    if key in _NAMED and isinstance(value, dict):
        for each in value.values():
            yield from _patterns(each)
    elif key not in _VALUES:
        yield from _patterns(value)


def _without(node: Any, tried: set[str]) -> Any:
    if isinstance(node, list):
        return [_without(each, tried) for each in node]
    if not isinstance(node, dict):
        return node
    left_out = {"pattern"} if isinstance(node.get("pattern"), str) and node["pattern"] not in tried else set()
    if isinstance(named := node.get("patternProperties"), dict) and not named.keys() <= tried:
        left_out |= _REST
    return {key: _cleaned(key, value, tried) for key, value in node.items() if key not in left_out}


def _cleaned(key: str, value: Any, tried: set[str]) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: _without(each, tried) for name, each in value.items()}
    return value if key in _VALUES else _without(value, tried)
