"""JSON Schema of a Python function, from its type hints and docstring.

Plain JSON types are read here; anything richer (pydantic models, dataclasses, enums, paths) is left to pydantic,
which is imported only then and also turns the JSON into those objects.
"""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from toolreeve.core.context import Context
from toolreeve.core.errors import ToolreeveError

Convert = Callable[[Any], Any]
_SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


class _NotPlain(Exception):
    """The hint is beyond plain JSON types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """`converts` turns JSON into a parameter's type; `context` is the parameter that receives the Context."""

    description: str
    schema: dict[str, Any]
    converts: Mapping[str, Convert]
    context: str | None


def read_signature(function: Callable[..., Any]) -> Signature:
    hints = typing.get_type_hints(function, include_extras=True)
    description, notes = _read_docstring(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required: list[str] = []
    converts: dict[str, Convert] = {}
    context = None
    open_ended = False
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if hint is Context:
            context = name
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ToolreeveError(
                f"{function.__qualname__}: parameter {name!r} cannot be passed by name, as tool arguments are"
            )
        schema, convert = _describe(hint, where=f"{function.__qualname__}({name})")
        if name in notes:
            schema.setdefault("description", notes[name])
        if parameter.default is parameter.empty:
            required.append(name)
        elif _is_json(parameter.default):
            schema["default"] = parameter.default
        if convert is not None:
            converts[name] = convert
        properties[name] = schema
    document = {"type": "object", "properties": properties, "required": required, "additionalProperties": open_ended}
    return Signature(description=description, schema=document, converts=converts, context=context)


def _describe(hint: Any, *, where: str) -> tuple[dict[str, Any], Convert | None]:
    try:
        return plain_schema(hint), None
    except _NotPlain:
        return _pydantic(hint, where=where)


def plain_schema(hint: Any) -> dict[str, Any]:
    """The schema of a hint made of JSON's own types. Raises _NotPlain for others."""
    if hint is Any:
        return {}
    if isinstance(hint, type) and hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    origin = get_origin(hint)
    args = get_args(hint)
    if origin is typing.Annotated:
        inner = plain_schema(args[0])
        notes = [note for note in args[1:] if isinstance(note, str)]
        if len(notes) != len(args) - 1:
            raise _NotPlain
        return inner | {"description": notes[0]} if notes else inner
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return _union([plain_schema(arg) for arg in args])
    if hint is list or origin in (list, Sequence):
        return {"type": "array"} | ({"items": plain_schema(args[0])} if args else {})
    if hint is dict or (origin in (dict, Mapping) and (not args or args[0] is str)):
        return {"type": "object"} | ({"additionalProperties": plain_schema(args[1])} if args else {})
    raise _NotPlain


def _union(members: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if all(set(member) == {"type"} for member in members):
        return {"type": [member["type"] for member in members]}
    named = [member for member in members if member != {"type": "null"}]
    if len(named) == 1 and isinstance(named[0].get("type"), str) and "enum" not in named[0]:
        return named[0] | {"type": [named[0]["type"], "null"]}
    return {"anyOf": list(members)}


def _pydantic(hint: Any, *, where: str) -> tuple[dict[str, Any], Convert]:
    try:
        from pydantic import TypeAdapter
    except ImportError:
        raise ToolreeveError(
            f"{where}: the type {hint!r} needs pydantic: run `pip install pydantic`, or use plain types"
        ) from None
    adapter: TypeAdapter[Any] = TypeAdapter(hint)
    return adapter.json_schema(), adapter.validate_python


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list, dict))


_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields|examples?|notes?):\s*$", re.IGNORECASE
)
_NOTE = re.compile(r"^\s+(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_SPHINX = re.compile(r"^:param\s+(?:\S+\s+)?(\w+):\s*(.*)$")


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The summary, and a note for each parameter (Google or Sphinx style)."""
    summary: list[str] = []
    notes: dict[str, str] = {}
    section: str | None = None
    last: str | None = None
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            section = heading[1].lower()
            last = None
        elif sphinx := _SPHINX.match(line):
            section = "params"
            notes[sphinx[1]] = sphinx[2]
        elif section in ("args", "arguments", "parameters", "params"):
            if note := _NOTE.match(line):
                last = note[1].lstrip("*")
                notes[last] = note[2]
            elif last and line.strip():
                notes[last] += " " + line.strip()
        elif section is None and not line.startswith(":"):
            summary.append(line)
    return "\n".join(summary).strip(), notes
