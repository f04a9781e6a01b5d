"""Which keys does the tree have, and what may each hold? Read from the dataclasses, so that nothing is said twice.

The JSON Schema that editors use is the very one that files, variables and flags are checked against.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast, get_args, get_origin

from toolreeve.config.places import expand
from toolreeve.config.settings import About, Settings
from toolreeve.core.schema import Schema
from toolreeve.core.signature import plain_schema

KeyPath = tuple[str, ...]
ONLY_BY_HAND = "bypass"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One setting."""

    path: KeyPath
    hint: Any
    about: About
    default: Any

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        return "TOOLREEVE_" + "_".join(self.path).upper()

    @property
    def several(self) -> bool:
        return get_origin(self.hint) is tuple

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON Schema of the value, as files may give it."""
        default = list(self.default) if self.several else self.default
        bounds = {"minimum": self.about.at_least, "exclusiveMinimum": self.about.above}
        narrowed = {word: bound for word, bound in bounds.items() if bound is not None}
        return _schema(self.hint) | narrowed | {"description": self.about.description, "default": default}

    def problem(self, value: Any) -> str:
        """What is wrong with a value; nothing if it fits."""
        wrapped = Schema({"type": "object", "properties": {"value": self.document}})
        return "; ".join(problem.text for problem in wrapped.problems({"value": value}))

    def settle(self, value: Any, base: Path, environ: Mapping[str, str]) -> Any:
        """The value as the tree holds it: tuples for lists, absolute paths, floats where a float is meant."""
        if value is None:
            return None
        if self.several:
            return tuple(expand(each, base=base, environ=environ) if self.about.paths else each for each in value)
        if self.about.paths:
            return expand(value, base=base, environ=environ)
        return float(value) if type(value) is int and self.hint is not int else value


def _schema(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return {"enum": [value for value in get_args(hint) if value != ONLY_BY_HAND]}
    return plain_schema(hint)


@cache
def leaves() -> Mapping[KeyPath, Leaf]:
    return MappingProxyType({leaf.path: leaf for leaf in _walk(Settings, ())})


def _walk(kind: Any, path: KeyPath) -> Iterator[Leaf]:
    for each in dataclasses.fields(kind):
        here = (*path, each.name)
        if dataclasses.is_dataclass(each.type):
            yield from _walk(each.type, here)
        else:
            hint, about = get_args(each.type)
            yield Leaf(path=here, hint=hint, about=about, default=each.default)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `toolreeve.toml`."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "toolreeve.toml"}
    return head | _section(Settings, ())


def _section(kind: Any, path: KeyPath) -> dict[str, Any]:
    properties = {}
    for each in dataclasses.fields(kind):
        here = (*path, each.name)
        properties[each.name] = (
            _section(each.type, here) if dataclasses.is_dataclass(each.type) else leaves()[here].document
        )
    return {
        "description": kind.__doc__,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def build(values: Mapping[KeyPath, Any]) -> Settings:
    """The tree with these values; what is not named keeps its default."""
    return cast(Settings, _build(Settings, (), values))


def value_at(settings: Settings, path: KeyPath) -> Any:
    value: Any = settings
    for name in path:
        value = getattr(value, name)
    return value


def _build(kind: Any, path: KeyPath, values: Mapping[KeyPath, Any]) -> Any:
    given: dict[str, Any] = {}
    for each in dataclasses.fields(kind):
        here = (*path, each.name)
        if dataclasses.is_dataclass(each.type):
            given[each.name] = _build(each.type, here, values)
        elif here in values:
            given[each.name] = values[here]
    return kind(**given)
