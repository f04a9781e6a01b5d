"""JSON Schema of a Python function, from its type hints and docstring.

Plain JSON types are read here. Richer ones (models, dataclasses, enumerations, dates) are left to pydantic, which is
imported only then and also turns the JSON into those objects.
"""

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from toolreeve.core.context import Context
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.suggest import hint_similar

if TYPE_CHECKING:
    from toolreeve.core.type_schema import TypedParameter

Convert = Callable[[Any], Any]
_SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


class _NotPlain(Exception):
    """The hint is beyond plain JSON types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSignature:
    """`converts` turns JSON into a parameter's type; `context` is the parameter that receives the Context. `output` is
    the schema of what the function returns, if its hint is richer than plain JSON."""

    description: str
    schema: dict[str, Any]
    converts: Mapping[str, Convert]
    context: str | None
    output: dict[str, Any] | None = None


@dataclass(slots=True)
class _Reading:
    """What is known of the parameters so far."""

    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    rich: dict[str, "TypedParameter"] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    context: str | None = None
    open_ended: bool = False


def read_signature(function: Callable[..., Any], *, skip_first: bool = False) -> FunctionSignature:
    """Raises ToolreeveError for a function that could never be called as a tool. `skip_first` leaves out `self`."""
    where = getattr(function, "__qualname__", None) or type(function).__qualname__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolreeveError(f"{where}: a tool returns its result once; return a list instead of `yield`")
    hints = _read_hints(function, where)
    description, notes = _read_docstring(inspect.getdoc(function) or "")
    reading = _Reading()
    for parameter in list(_parameters(function, where))[skip_first:]:
        _read_parameter(parameter, hints.get(parameter.name, Any), reading, where)
    definitions = _complete(reading, where)
    for name, schema in reading.properties.items():
        if name in notes:
            schema.setdefault("description", notes[name])
        if "default" in schema:
            schema["default"] = schema.pop("default")
    document: dict[str, Any] = {
        "type": "object",
        "properties": reading.properties,
        "required": reading.required,
        "additionalProperties": reading.open_ended,
    }
    if definitions:
        document["$defs"] = definitions
    return FunctionSignature(
        description=description,
        schema=document,
        converts={name: partial(parameter.convert, name) for name, parameter in reading.rich.items()},
        context=reading.context,
        output=_output_schema(hints.get("return", Any), where),
    )


def _read_hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise ToolreeveError(
            f"{where}: {problem}; define it before the tool, at module level and outside `if TYPE_CHECKING`"
        ) from None
    except TypeError as problem:
        raise ToolreeveError(f"{where}: its type hints cannot be read: {problem}") from None


def _parameters(function: Callable[..., Any], where: str) -> "Sequence[inspect.Parameter]":
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError) as problem:
        raise ToolreeveError(f"{where}: {problem}; wrap it in a function with type hints") from None


def _read_parameter(parameter: "inspect.Parameter", hint: Any, reading: _Reading, where: str) -> None:
    name = parameter.name
    if hint is Context or Context in get_args(hint):
        reading.context = name
        return
    if parameter.kind is parameter.VAR_KEYWORD:
        reading.open_ended = True
        return
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
        raise ToolreeveError(f"{where}: parameter {name!r} cannot be passed by name, as tool arguments are")
    where = f"{where}({name})"
    default = parameter.default
    if default is not parameter.empty and (described := _field(default)) is not None:
        hint = typing.Annotated[hint, described]
        default = _field_default(described, parameter, where)
    if default is None and not _accepts_none(hint):
        hint = Union[hint, None]  # noqa: UP007 - `|` refuses forward references and strings
    reading.properties[name] = _describe(name, hint, reading, where)
    if default is parameter.empty:
        reading.required.append(name)
    else:
        reading.defaults[name] = default


def _describe(name: str, hint: Any, reading: _Reading, where: str) -> dict[str, Any]:
    try:
        return plain_schema(hint)
    except _NotPlain:
        from toolreeve.core.type_schema import TypedParameter

        reading.rich[name] = TypedParameter(hint, where=where)
        note = next((each for each in get_args(hint)[1:] if isinstance(each, str)), None)
        is_noted = get_origin(hint) is typing.Annotated and note is not None
        return {"description": note} if is_noted else {}


def _complete(reading: _Reading, where: str) -> dict[str, Any]:
    """Complete the schemas of rich types, and add the defaults. Returns the shared definitions."""
    definitions: dict[str, Any] = {}
    if reading.rich:
        from toolreeve.core.type_schema import UNKNOWN, generate_schemas

        generated, definitions = generate_schemas(reading.rich, where=where)
        for name, schema in generated.items():
            reading.properties[name] = schema | reading.properties[name]
            if name in reading.defaults:
                default = reading.rich[name].dump_default(reading.defaults.pop(name))
                if default is not UNKNOWN:
                    reading.properties[name]["default"] = default
    for name, default in reading.defaults.items():
        if _is_json(default) and _fits(default, reading.properties[name]):
            reading.properties[name]["default"] = default
    return definitions


def _output_schema(hint: Any, where: str) -> dict[str, Any] | None:
    """The schema of a returned model or dataclass, or of a list of them; None for what needs none."""
    if _is_own_result(hint):
        return None
    try:
        plain_schema(hint)
    except _NotPlain:
        from toolreeve.core.type_schema import describe_output

        return describe_output(hint, where=f"{where} -> {getattr(hint, '__name__', hint)}")
    return None


def _is_own_result(hint: Any) -> bool:
    from toolreeve.core.result import Failed, Output, Succeeded

    return any(each in (Output, Succeeded, Failed) for each in (hint, *get_args(hint)))


def _field(default: Any) -> Any:
    """A pydantic `Field(…)` in the place of a default."""
    if "pydantic.fields" not in sys.modules:
        return None
    from toolreeve.core.type_schema import read_field

    return read_field(default)


def _field_default(described: Any, parameter: "inspect.Parameter", where: str) -> Any:
    from toolreeve.core.type_schema import UNKNOWN, field_default

    default = field_default(described, where=where)
    return parameter.empty if default is UNKNOWN else default


def _accepts_none(hint: Any) -> bool:
    if hint is Any or hint is None or hint is types.NoneType or hint is object:
        return True
    if get_origin(hint) is typing.Annotated:
        return _accepts_none(get_args(hint)[0])
    return get_origin(hint) in (Union, types.UnionType) and any(map(_accepts_none, get_args(hint)))


def _fits(default: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a call without the argument would be valid; otherwise the function's own default applies."""
    kinds = schema.get("type", "")
    if not schema or _SCALARS.get(type(default)) == kinds:
        return True
    if default is None and "null" in kinds and not {"enum", "const"} & schema.keys():
        return True
    from toolreeve.core.schema import Schema

    return Schema(schema, fills_defaults=False).accepts(default)


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
    if origin is Literal and all(type(arg) in _SCALARS for arg in args):
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


def own_name_of(function: Any) -> str:
    """The name of the function that a partial one wraps. Raises ToolreeveError if there is none."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None)
    if name is None:
        raise ToolreeveError(f"{function!r:.100} has no name: pass one, as in tool(name='…')(function)")
    return str(name)


def check_input(schema: Mapping[str, Any], signature: FunctionSignature, name: str) -> Mapping[str, Any]:
    """An explicit input schema, checked against the function that receives the arguments."""
    properties = schema.get("properties", {})
    known = signature.schema["properties"]
    if not signature.schema["additionalProperties"]:
        for each in properties:
            if each not in known:
                raise ToolreeveError(
                    f"tool {name!r}: the function has no parameter {each!r}{hint_similar(each, known)}"
                )
    for each in signature.schema["required"]:
        if each not in properties and not schema.get("additionalProperties", True):
            raise ToolreeveError(f"tool {name!r}: the function needs {each!r}, which the input schema does not have")
    return schema
