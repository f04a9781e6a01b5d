"""Settings as fields: keys, types and JSON Schema, derived from the dataclasses.

The JSON Schema that editors use is the one that files, variables and flags are checked against.
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
    path: KeyPath
    hint: Any
    field: Field
    default: Any

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str | None:
        """None for settings made of tables: a variable cannot hold them."""
        return None if self.has_tables else "TOOLREEVE_" + "_".join(self.path).upper()

    @property
    def has_tables(self) -> bool:
        return Mapping in (get_origin(self.hint), *map(get_origin, get_args(self.hint)))

    @property
    def is_list(self) -> bool:
        return get_origin(self.hint) is tuple

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON Schema of the value as written in files."""
        default = list(self.default) if self.is_list else self.default
        bounds = {"minimum": self.field.at_least, "exclusiveMinimum": self.field.above}
        narrowed = {word: bound for word, bound in bounds.items() if bound is not None}
        shape = dict(self.field.shape) if self.field.shape is not None else _schema(self.hint)
        return shape | narrowed | {"description": self.field.description, "default": default}

    def problem(self, value: Any) -> str:
        """The validation errors of a value; empty if it is valid."""
        return "; ".join(map(_discreet, self._problems(value)))

    def error_path(self, value: Any) -> tuple[str | int, ...]:
        """The path of the first validation error within the tables of a value."""
        if not self.has_tables:
            return ()
        problems = self._problems(value)
        if not problems:
            return ()
        parts = problems[0].pointer.split("/")[2:]
        return tuple(int(part) if part.isdigit() else part for part in parts)

    def _problems(self, value: Any) -> list[SchemaProblem]:
        """Tables by name are validated one by one where they are read, so that an invalid one affects no other."""
        if self._is_plain(value):
            return []
        document = {"type": "object"} if self.has_tables and not self.is_list else self.document
        return Schema({"type": "object", "properties": {"value": document}}).problems({"value": value})

    def _is_plain(self, value: Any) -> bool:
        """Whether a value is seen to be valid without a validator, whose import takes long for a hook."""
        if self.field.shape is not None or self.hint not in (str, bool, int) or type(value) is not self.hint:
            return False
        is_least = self.field.at_least is None or value >= self.field.at_least
        return is_least and (self.field.above is None or value > self.field.above)

    def shown(self, value: Any) -> Any:
        """The printable form of a value: tables may hold credentials, so only their names or users are shown."""
        if not self.has_tables:
            return value
        if self.is_list:
            return [each.get("user") for each in value]
        return list(value)

    def normalize(self, value: Any, base: Path, environ: Mapping[str, str]) -> Any:
        """The value as `Settings` holds it: tuples for lists, absolute paths, floats for float fields."""
        if value is None:
            return None
        if self.is_list and self.field.paths:
            return tuple(expand(each, base=base, environ=environ) for each in value)
        if self.is_list:
            return tuple(value)
        if self.field.paths:
            return expand(value, base=base, environ=environ)
        if type(value) is int and self.hint is not int:
            return float(value)
        return value


def _discreet(problem: SchemaProblem) -> str:
    """A value in place of a secret reference may be the secret itself: it is never quoted."""
    return "must be written as ${secret:NAME}" if REFERENCE in problem.text else problem.text


def _schema(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return {"enum": [value for value in get_args(hint) if value != ONLY_BY_HAND]}
    return plain_schema(hint)


@cache
def setting_fields() -> Mapping[KeyPath, SettingField]:
    return MappingProxyType({setting.path: setting for setting in _walk(Settings, ())})


@cache
def spellings() -> Mapping[KeyPath, KeyPath]:
    """Other spellings of keys in files."""
    return {(*path[:-1], name): path for path, setting in setting_fields().items() for name in setting.field.also}


def _walk(kind: Any, path: KeyPath) -> Iterator[SettingField]:
    for each in dataclasses.fields(kind):
        here = (*path, each.name)
        if dataclasses.is_dataclass(each.type):
            yield from _walk(each.type, here)
        else:
            hint, field = get_args(each.type)
            default = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
            yield SettingField(path=here, hint=hint, field=field, default=default)


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
            setting = setting_fields()[here]
            properties |= dict.fromkeys((each.name, *setting.field.also), setting.document)
    return {
        "description": kind.__doc__,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def build(values: Mapping[KeyPath, Any]) -> Settings:
    """Settings with these values; the others keep their defaults."""
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
