"""Drops patterns of a schema that do not match in linear time.

A server may write a pattern that takes hours for a short text, and would block every call. A dropped pattern is not
checked here; the server that wrote it checks it itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs

from toolreeve.core.errors import ToolreeveError

MAX_PATTERNS = 100
"""Patterns of one schema that are compiled; compiling takes time, too."""
MAX_LARGE = 5
MAX_LENGTH = 2_000
_SIZE = 1 << 18
_LINEAR = jsonschema_rs.RegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_VALUES = frozenset({"const", "enum", "default", "examples"})
_PROPERTIES = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})
"""Keywords that can only be checked together."""


def without_costly_patterns(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same object if there are none. Raises ToolreeveError for an invalid pattern."""
    found = set(_patterns(document))
    candidates = [each for each in sorted(found, key=len)[:MAX_PATTERNS] if len(each) <= MAX_LENGTH]
    linear = {each for each in candidates if _compiles(each, _LINEAR)}
    if found <= linear:
        return document
    _refuse_invalid([each for each in candidates if each not in linear and not _compiles(each, _BACKTRACKING)])
    cleaned: dict[str, Any] = _keep_only(document, linear)
    return cleaned


@lru_cache(maxsize=1024)
def _compiles(pattern: str, engine: Any) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, offline=True, pattern_options=engine)
    except ValueError:
        return False
    return True


def _refuse_invalid(doubtful: Sequence[str]) -> None:
    """A pattern that does not compile may only be large; finding out takes long."""
    if len(doubtful) > MAX_LARGE:
        raise ToolreeveError(f"not usable: more than {MAX_LARGE} of its patterns are invalid or very large")
    for pattern in doubtful:
        if not _compiles(pattern, None):
            raise ToolreeveError(f"not usable: {pattern[:100]!a} is not a valid pattern")


def _patterns(node: Any) -> Iterator[str]:
    """Of a schema and all its subschemas."""
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


def _keep_only(node: Any, patterns: set[str]) -> Any:
    if isinstance(node, list):
        return [_keep_only(each, patterns) for each in node]
    if not isinstance(node, dict):
        return node
    dropped = set[str]()
    if isinstance(node.get("pattern"), str) and node["pattern"] not in patterns:
        dropped.add("pattern")
    if isinstance(named := node.get("patternProperties"), dict) and not named.keys() <= patterns:
        dropped |= _PROPERTIES
    return {key: _keep_only_in(key, value, patterns) for key, value in node.items() if key not in dropped}


def _keep_only_in(key: str, value: Any, patterns: set[str]) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: _keep_only(each, patterns) for name, each in value.items()}
    return value if key in _VALUES else _keep_only(value, patterns)
