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

from toolreeve.config.field import Field
from toolreeve.config.settings import Settings
from toolreeve.config.table_schemas import REFERENCE
from toolreeve.config.xdg import expand
from toolreeve.core.schema import Schema, SchemaProblem
from toolreeve.core.signature import plain_schema

KeyPath = tuple[str, ...]
ONLY_BY_HAND = "bypass"


@dataclass(frozen=True, kw_only=True)
class SettingField:
    """One setting."""

    path: KeyPath
    hint: Any
    about: Field
    default: Any

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str | None:
        """None for what is made of tables: it has no place in a variable."""
        return None if self.tables else "TOOLREEVE_" + "_".join(self.path).upper()

    @property
    def tables(self) -> bool:
        return Mapping in (get_origin(self.hint), *map(get_origin, get_args(self.hint)))

    @property
    def several(self) -> bool:
        return get_origin(self.hint) is tuple

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON Schema of the value, as files may give it."""
        default = list(self.default) if self.several else self.default
        bounds = {"minimum": self.about.at_least, "exclusiveMinimum": self.about.above}
        narrowed = {word: bound for word, bound in bounds.items() if bound is not None}
        shape = dict(self.about.shape) if self.about.shape is not None else _schema(self.hint)
        return shape | narrowed | {"description": self.about.description, "default": default}

    def problem(self, value: Any) -> str:
        """What is wrong with a value; nothing if it fits."""
        return "; ".join(map(_discreet, self._problems(value)))

    def place(self, value: Any) -> tuple[str | int, ...]:
        """Where in the tables of a value the first thing wrong with it stands."""
        if not self.tables:
            return ()
        pointers = [problem.pointer.split("/")[2:] for problem in self._problems(value)]
        return tuple(int(part) if part.isdigit() else part for part in pointers[0]) if pointers else ()

    def _problems(self, value: Any) -> list[SchemaProblem]:
        """Tables by name are looked into one by one where they are read, so that a bad one spoils no other."""
        document = {"type": "object"} if self.tables and not self.several else self.document
        return Schema({"type": "object", "properties": {"value": document}}).problems({"value": value})

    def shown(self, value: Any) -> Any:
        """The value as it may be printed: of tables, which may hold credentials, only whom or what they are about."""
        if not self.tables:
            return value
        return [each.get("user") for each in value] if self.several else list(value)

    def settle(self, value: Any, base: Path, environ: Mapping[str, str]) -> Any:
        """The value as the tree holds it: tuples for lists, absolute paths, floats where a float is meant."""
        if value is None:
            return None
        if self.several:
            return tuple(expand(each, base=base, environ=environ) if self.about.paths else each for each in value)
        if self.about.paths:
            return expand(value, base=base, environ=environ)
        return float(value) if type(value) is int and self.hint is not int else value


def _discreet(problem: SchemaProblem) -> str:
    """What was written where a reference to a secret belongs may be the secret itself."""
    return "must be written as ${secret:NAME}" if REFERENCE in problem.text else problem.text


def _schema(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return {"enum": [value for value in get_args(hint) if value != ONLY_BY_HAND]}
    return plain_schema(hint)


@cache
def leaves() -> Mapping[KeyPath, SettingField]:
    return MappingProxyType({leaf.path: leaf for leaf in _walk(Settings, ())})


@cache
def spellings() -> Mapping[KeyPath, KeyPath]:
    """Other keys that a file may use for a setting."""
    return {(*path[:-1], name): path for path, leaf in leaves().items() for name in leaf.about.also}


def _walk(kind: Any, path: KeyPath) -> Iterator[SettingField]:
    for each in dataclasses.fields(kind):
        here = (*path, each.name)
        if dataclasses.is_dataclass(each.type):
            yield from _walk(each.type, here)
        else:
            hint, about = get_args(each.type)
            default = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
            yield SettingField(path=here, hint=hint, about=about, default=default)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `toolreeve.toml`."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "toolreeve.toml"}
    return head | _section(Settings, ())


def _section(kind: Any, path: KeyPath) -> dict[str, Any]:
    properties = {}
    for each in dataclasses.fields(kind):
        here = (*path, each.name)
        if dataclasses.is_dataclass(each.type):
            properties[each.name] = _section(each.type, here)
        else:
            leaf = leaves()[here]
            properties |= dict.fromkeys((each.name, *leaf.about.also), leaf.document)
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
