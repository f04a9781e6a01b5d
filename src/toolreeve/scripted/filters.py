"""Template filters: pure functions from JSON values to a JSON value."""

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from toolreeve.core import json

Filter = Callable[..., Any]


class _Missing:
    """The value of a parameter that was not given."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


def as_text(value: Any) -> str:
    """A value as a program gets it: strings unchanged, everything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is MISSING or value is None else json.dumps(value).decode()


def _default(value: Any, other: Any = "", boolean: Any = False) -> Any:  # noqa: FBT002 - called by templates
    return other if value is MISSING or value is None or (boolean and not value) else value


def _skip_missing(function: Callable[..., Any]) -> Filter:
    """The filter ignores a missing value, so that a `default` after it still applies."""

    def filtered(value: Any, *arguments: Any) -> Any:
        return value if value is MISSING else function(value, *arguments)

    return filtered


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("is not a list")
    return value


def _join(value: Any, separator: str = "") -> str:
    return separator.join(map(as_text, _listed(value)))


def _nth(index: int) -> Callable[[Any], Any]:
    def pick(value: Any) -> Any:
        held = value if isinstance(value, str) else _listed(value)
        return held[index] if held else MISSING

    return pick


def _length(value: Any) -> int:
    if not isinstance(value, str | list | Mapping):
        raise TypeError("has no length")
    return len(value)


def _unique(value: Any) -> list[Any]:
    return list({json.dumps(item): item for item in _listed(value)}.values())


def _replace(value: Any, old: Any, new: Any) -> str:
    return as_text(value).replace(as_text(old), as_text(new))


def _sql(value: Any, dialect: Any = "") -> str:
    """An SQL literal. Dialects differ in what a backslash means: without a dialect, it may contain none."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return as_text(value)
    if not isinstance(value, str):
        raise TypeError("is neither a text nor a number")
    text = value.replace("'", "''")
    if "\\" not in text or dialect in ("sqlite", "duckdb"):
        return f"'{text}'"
    doubled = text.replace("\\", "\\\\")
    if dialect == "postgres":
        return f"E'{doubled}'"
    if dialect == "mysql":
        return f"'{doubled}'"
    raise ValueError("contains a backslash, whose meaning depends on the database: name it, as in |sql('postgres')")


def _regex(value: Any) -> str:
    """A regular expression (basic, extended or Perl) that matches exactly this text."""
    return re.sub(r"([][.*^$\\|+?(){}/])", _in_brackets, as_text(value))


def _in_brackets(found: re.Match[str]) -> str:
    return {"^": r"\^", "\\": r"\\"}.get(found[0], f"[{found[0]}]")


def _of_mapping(pick: Callable[[Mapping[str, Any]], Any]) -> Callable[[Any], list[Any]]:
    def picked(value: Any) -> list[Any]:
        if not isinstance(value, Mapping):
            raise TypeError("is not an object")
        return list(pick(value))

    return picked


_PLAIN: Mapping[str, Callable[..., Any]] = {
    "tojson": lambda value: json.dumps(value).decode(),
    "json": lambda value: json.dumps(value).decode(),
    "upper": lambda value: as_text(value).upper(),
    "lower": lambda value: as_text(value).lower(),
    "title": lambda value: as_text(value).title(),
    "capitalize": lambda value: as_text(value).capitalize(),
    "trim": lambda value: as_text(value).strip(),
    "string": as_text,
    "replace": _replace,
    "join": _join,
    "first": _nth(0),
    "last": _nth(-1),
    "length": _length,
    "count": _length,
    "sort": lambda value: sorted(_listed(value), key=as_text),
    "reverse": lambda value: _listed(value)[::-1],
    "unique": _unique,
    "keys": _of_mapping(lambda value: value.keys()),
    "values": _of_mapping(lambda value: value.values()),
    "int": lambda value: int(float(value)) if isinstance(value, str) and "." in value else int(value),
    "float": float,
    "abs": abs,
    "round": round,
    "sql": _sql,
    "regex": _regex,
    "url": lambda value: quote(as_text(value), safe=""),
    "urlencode": lambda value: quote(as_text(value), safe=""),
    "b64encode": lambda value: base64.b64encode(as_text(value).encode()).decode(),
}
FILTERS: Mapping[str, Filter] = {
    "default": _default,
    "d": _default,
    **{name: _skip_missing(function) for name, function in _PLAIN.items()},
}
LITERALS: Mapping[str, str] = {
    "sql": "sql",
    "json": "json",
    "tojson": "json",
    "int": "number",
    "length": "number",
    "count": "number",
}
"""The kind of text that a filter is guaranteed to produce."""
