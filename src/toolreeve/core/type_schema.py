"""JSON Schema of Python types, and conversion into them, by pydantic.

Imported only for types beyond plain JSON: models, dataclasses, enumerations, dates, paths. The schemas of one function
are generated together, so that their definitions stand once, at the root of its schema.
"""

import sys
import typing
from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import Any, Literal, NotRequired, Required, get_args, get_origin

from pydantic import AfterValidator, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, PydanticUndefined
from typing_extensions import TypedDict as PortableTypedDict

from toolreeve.core import json
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.schema import SchemaProblem, invalid, to_pointer

Mode = Literal["validation", "serialization"]
UNKNOWN: Any = object()
"""No default that JSON could express."""


class TypedParameter:
    """One parameter of a rich type. `where` names it in errors."""

    def __init__(self, hint: Any, *, where: str) -> None:
        self._where = where
        try:
            self.adapter: TypeAdapter[Any] = TypeAdapter(_portable(hint, where))
        except PydanticUndefinedAnnotation as problem:
            raise ToolreeveError(
                f"{where}: {problem.message}; define it before the tool, at module level and outside `if TYPE_CHECKING`"
            ) from None
        except PydanticUserError as problem:
            raise unusable(where, problem) from None

    def convert(self, name: str, value: Any) -> Any:
        """The JSON value as an instance. Raises ToolError(INVALID_PARAMS) naming every problem."""
        try:
            return self.adapter.validate_json(json.dumps(value))
        except ValidationError as problem:
            raise invalid(
                [
                    SchemaProblem(to_pointer([name, *each["loc"]]), each["msg"])
                    for each in problem.errors(include_url=False, include_context=False, include_input=False)
                ]
            ) from None

    def dump_default(self, default: Any) -> Any:
        """The default as JSON, or UNKNOWN if its type cannot express it: then the function's own default applies."""
        try:
            return self.adapter.dump_python(default, mode="json", by_alias=True, warnings="error")
        except (PydanticSerializationError, ValueError, TypeError):
            return UNKNOWN


def generate_schemas(
    parameters: Mapping[str, TypedParameter], *, where: str, mode: Mode = "validation"
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each parameter, and the definitions they refer to at `#/$defs`."""
    inputs = [(name, mode, parameter.adapter) for name, parameter in parameters.items()]
    try:
        found, shared = TypeAdapter.json_schemas(inputs, by_alias=True, schema_generator=_Untitled)
    except PydanticUserError as problem:
        raise unusable(where, problem) from None
    return {name: dict(schema) for (name, _), schema in found.items()}, shared.get("$defs", {})


class _Untitled(GenerateJsonSchema):
    """Without a title for each field, which only repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def unusable(where: str, problem: Exception) -> ToolreeveError:
    reason = str(problem).splitlines()[0].rstrip(".")
    return ToolreeveError(
        f"{where}: {reason}; use a type with a JSON form: str, int, float, bool, list, dict, Literal, Enum, date, "
        "Path, TypedDict, a dataclass or a pydantic model"
    )


def read_field(default: Any) -> FieldInfo | None:
    """The pydantic `Field(…)` that stands in the place of a default."""
    return default if isinstance(default, FieldInfo) else None


def field_default(field: FieldInfo, *, where: str) -> Any:
    """The default inside a `Field(…)`, or UNKNOWN."""
    if field.default_factory is not None:
        raise ToolreeveError(f"{where}: default_factory cannot be used for a tool's parameter; give a plain default")
    return UNKNOWN if field.default is PydanticUndefined else field.default


def _portable(hint: Any, where: str, seen: tuple[Any, ...] = ()) -> Any:
    """The hint in pydantic's terms: it takes no member of an enumeration in `Literal`, and before Python 3.12 no
    `typing.TypedDict`."""
    if sys.version_info < (3, 12) and typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        if hint in seen:
            raise ToolreeveError(
                f"{where}: {hint.__name__} contains itself; derive it from typing_extensions.TypedDict"
            )
        fields = typing.get_type_hints(hint, include_extras=True)
        portable = {
            name: _required(hint, name)[_portable(inner, where, (*seen, hint))] for name, inner in fields.items()
        }
        made = PortableTypedDict(hint.__name__, portable)  # type: ignore[misc]
        made.__doc__ = hint.__doc__
        return made
    args = get_args(hint)
    origin = get_origin(hint)
    if origin is Literal:
        return _literal(hint, args)
    if not args:
        return hint
    inner = tuple(_portable(arg, where, seen) for arg in args)
    if all(new is old for new, old in zip(inner, args, strict=True)):
        return hint
    if origin in (typing.Union, UnionType):
        return typing.Union[inner]  # noqa: UP007 - of a tuple
    return typing.Annotated[inner] if origin is typing.Annotated else origin[inner]


def _literal(hint: Any, args: tuple[Any, ...]) -> Any:
    if not any(isinstance(arg, Enum) for arg in args):
        return hint
    members = {arg.value if isinstance(arg, Enum) else arg: arg for arg in args}
    return typing.Annotated[Literal[tuple(members)], AfterValidator(members.__getitem__)]


def _required(kind: Any, name: str) -> Any:
    return Required if name in kind.__required_keys__ else NotRequired


def describe_output(hint: Any, *, where: str) -> dict[str, Any] | None:
    """The schema of what a function returns, as the object that `as_output` makes of it; None if it has none."""
    try:
        schemas, definitions = generate_schemas(
            {"output": TypedParameter(hint, where=where)}, where=where, mode="serialization"
        )
    except ToolreeveError:
        return None
    schema = _inlined(schemas["output"], definitions)
    forms = [_inlined(form, definitions).get("type") for form in schema.get("anyOf", [schema])]
    if all(form == "object" for form in forms):
        document = {"type": "object"} | schema
    elif "object" in forms or "null" in forms:
        return None
    else:
        document = {"type": "object", "properties": {"output": schema}, "required": ["output"]}
    used = json.dumps([document, definitions]).decode()
    kept = {name: each for name, each in definitions.items() if f'"#/$defs/{name}"' in used}
    return document | {"$defs": kept} if kept else document


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    target = definitions.get(str(schema.get("$ref", "")).removeprefix("#/$defs/"), {})
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
