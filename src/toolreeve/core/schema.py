"""JSON Schema validation of arguments; reports all problems with their pointers.

A schema is never allowed to fetch anything: remote `$ref`s fail offline. Simple slips of models (a number in
quotes, one value where a list is expected) are repaired, and only after validation failed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.schema_refs import explain_unresolved
from toolreeve.core.suggest import hint_similar
from toolreeve.core.visible import one_line

MAX_DEPTH = 64
MAX_CHARACTERS = 16 * 1024 * 1024
SHOWN_PROBLEMS = 20
SMALL = 64 * 1024
MAX_PLAIN = 64
LONGEST_POINTER = 200
LONGEST_FAULT = 600
_PLAIN = frozenset({int, float, bool, type(None)})


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """One problem of the arguments; `pointer` is a JSON pointer into them."""

    pointer: str
    text: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.text}"


class Schema:
    """A compiled JSON Schema of an object. `fills_defaults` is off if another party applies the defaults; `linear`
    accepts only patterns that match in linear time, whatever the text. `verify` raises ToolError for arguments that are
    valid but that the tool itself cannot read."""

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        fills_defaults: bool = True,
        linear: bool = False,
        verify: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.document = document
        self._linear = linear
        self._verify = verify
        self._defaults = _read_defaults(document) if fills_defaults else {}

    @cached_property
    def _validator(self) -> Any:
        import jsonschema_rs  # 5 ms, at the first call

        try:
            patterns = jsonschema_rs.RegexOptions() if self._linear else None
            return jsonschema_rs.validator_for(dict(self.document), offline=True, pattern_options=patterns)
        except (ValueError, TypeError) as problem:
            raise self._unusable(problem) from None

    def _unusable(self, problem: Exception) -> ToolreeveError:
        fault = _fault(self.document, problem, linear=self._linear)
        shown = one_line(str(SchemaProblem(fault.pointer[:LONGEST_POINTER], fault.text)))
        return ToolreeveError(f"not a usable JSON Schema: {shown[:LONGEST_FAULT]}")

    def check(self) -> None:
        """Raises ToolreeveError now rather than at the first call if the schema cannot be compiled."""
        _ = self._validator

    def parse(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with defaults filled in. Raises ToolError(INVALID_PARAMS) naming every problem."""
        args = self._validate(raw)
        if self._verify is not None:
            self._verify(args)
        return args

    def _validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        if not _is_small(raw) and (problem := _oversized(raw)):
            raise invalid([problem])
        args = {**self._defaults, **raw}
        try:
            if self._validator.is_valid(args):
                return args
            repaired = _repair(args, self._validator.iter_errors(args))
            if repaired is not None and self._validator.is_valid(repaired):
                return repaired
        except ValueError:
            raise invalid(_non_json(args)) from None
        raise invalid(self.problems(args))

    def accepts(self, value: Any) -> bool:
        try:
            return bool(self._validator.is_valid(value))
        except ValueError:
            return False

    def problems(self, value: Any, most: int | None = None) -> list[SchemaProblem]:
        """Raises ValueError for a value that is not JSON, or nested too deeply."""
        return [_explain(error, self.document) for error in islice(self._validator.iter_errors(value), most)]


def _read_defaults(document: Mapping[str, Any]) -> dict[str, Any]:
    properties = document.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {
        name: prop["default"] for name, prop in properties.items() if isinstance(prop, Mapping) and "default" in prop
    }


def invalid(problems: Sequence[SchemaProblem]) -> ToolError:
    count = len(problems)
    shown = "; ".join(map(str, problems[:SHOWN_PROBLEMS]))
    more = f"; and {count - SHOWN_PROBLEMS} more" if count > SHOWN_PROBLEMS else ""
    return ToolError(
        ErrorCode.INVALID_PARAMS,
        f"{count} problem{'s' * (count != 1)} with the arguments: {shown}{more}",
        detail=[{"pointer": problem.pointer, "problem": problem.text} for problem in problems],
    )


def _is_small(raw: Any) -> bool:
    """Whether the arguments are a few short plain values, as nearly all are: then size checks are unnecessary."""
    if type(raw) is not dict:
        return False
    for key, value in raw.items():
        kind = type(value)
        if kind is str:
            if len(value) > SMALL or not value.isascii():
                return False
        elif kind not in _PLAIN:
            return False
        if type(key) is not str or not key.isascii():
            return False
    return len(raw) <= MAX_PLAIN


def _oversized(raw: Mapping[str, Any]) -> SchemaProblem | None:
    """Depth, size and encoding, checked without recursion before anything else reads the arguments."""
    if not isinstance(raw, Mapping):
        return SchemaProblem("", f"expected an object, got {_kind(raw)}")
    characters = 0
    level: list[tuple[str, Any]] = [("", raw)]
    for _ in range(MAX_DEPTH):
        below: list[tuple[str, Any]] = []
        for pointer, container in level:
            if isinstance(container, dict | Mapping):
                for key in container:
                    if not isinstance(key, str):
                        return SchemaProblem(pointer, f"has a key that is not a string: {key!r}")
                    if not (key.isascii() or _encodable(key)):
                        return SchemaProblem(pointer, f"has a key that is not valid UTF-8 text: {key!r}")
                items: Iterable[tuple[Any, Any]] = container.items()
            else:
                items = enumerate(container)
            for key, value in items:
                if isinstance(value, str):
                    characters += len(value)
                    if not (value.isascii() or _encodable(value)):
                        return SchemaProblem(f"{pointer}/{key}", "is not valid UTF-8 text (it holds a lone surrogate)")
                elif isinstance(value, dict | list | tuple):
                    below.append((f"{pointer}/{key}", value))
        if characters > MAX_CHARACTERS:
            return SchemaProblem(
                "", f"holds more than {MAX_CHARACTERS // 1024 // 1024} MB of text; pass a file path instead"
            )
        if not below:
            return None
        level = below
    return SchemaProblem(level[0][0][:80], f"is nested deeper than {MAX_DEPTH} levels")


def _non_json(args: Mapping[str, Any]) -> list[SchemaProblem]:
    """The arguments that are not JSON: only a program can pass such, never a model."""
    problems = []
    for name, value in args.items():
        try:
            json.dumps(value)
        except TypeError as reason:
            problems.append(SchemaProblem(to_pointer([name]), f"is not a JSON value: {reason}"))
    return problems or [SchemaProblem("", "holds a value that is not JSON")]


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _explain(error: Any, document: Mapping[str, Any], depth: int = 0) -> SchemaProblem:
    kind = error.kind
    pointer = to_pointer(error.instance_path)
    match kind.name:
        case "type":
            return SchemaProblem(
                pointer, f"expected {' or '.join(kind.types)}, got {_kind(error.instance)} {_short(error.instance)}"
            )
        case "required":
            return SchemaProblem(f"{pointer}/{kind.property}", "is required but missing")
        case "enum":
            options = list(kind.options)
            hint = hint_similar(error.instance, options)
            return SchemaProblem(pointer, f"must be one of {_short(options)}, got {_short(error.instance)}{hint}")
        case "additionalProperties" | "unevaluatedProperties":
            known = list(_properties_at(document, error.schema_path))
            unknown = ", ".join(f"{name!r:.80}{hint_similar(name, known)}" for name in kind.unexpected[:SHOWN_PROBLEMS])
            if len(kind.unexpected) > SHOWN_PROBLEMS:
                unknown += f" and {len(kind.unexpected) - SHOWN_PROBLEMS} more"
            allowed = f"; known are {', '.join(known)}" if known else "; it takes none"
            return SchemaProblem(pointer, f"unknown {unknown}{allowed}")
        case "anyOf" | "oneOf" if depth < 2 and getattr(kind, "context", None):
            branches = [branch for branch in kind.context if branch]
            closest: Sequence[Any] = min(branches, key=partial(_branch_distance, error), default=())
            inner = "; ".join(str(_explain(each, document, depth + 1)) for each in closest)
            return SchemaProblem(pointer, f"matches none of the allowed forms; the closest: {inner}")
        case _:
            return SchemaProblem(pointer, error.message if len(error.message) < 300 else error.message[:300] + "…")


def _branch_distance(error: Any, branch: Sequence[Any]) -> tuple[bool, int]:
    """A form of another type is further away than one of its type with many problems."""
    here = list(error.instance_path)
    return any(each.kind.name == "type" and list(each.instance_path) == here for each in branch), len(branch)


def _fault(document: Mapping[str, Any], problem: Exception, *, linear: bool) -> SchemaProblem:
    """What makes a schema unusable; `pointer` leads into the schema."""
    from jsonschema_rs import ValidationError

    if not isinstance(problem, ValidationError):
        found = _oversized(document) or _non_json(document)[0]
        return found if found.pointer else SchemaProblem("", str(problem))
    if problem.kind.name == "$ref":
        path, text = explain_unresolved(document, problem.message)
        return SchemaProblem(to_pointer(path), text)
    error = _innermost(problem)
    if error.kind.name == "format":
        fix = "correct it, without look-around and back-references" if linear else "correct it"
        return SchemaProblem(
            to_pointer(error.instance_path), f"{_short(error.instance)} is not a valid regular expression; fix: {fix}"
        )
    return _explain(error, document)


def _innermost(error: Any) -> Any:
    """Of several alternatives, the problem of the one that matched furthest."""
    while branches := [branch for branch in getattr(error.kind, "context", None) or () if branch]:
        error = max(branches, key=lambda branch: len(branch[0].instance_path))[0]
    return error


def to_pointer(path: Sequence[str | int]) -> str:
    """A JSON pointer to the place that the keys and indices lead to."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _kind(value: Any) -> str:
    names = {
        str: "string",
        bool: "boolean",
        int: "integer",
        float: "number",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


def _short(value: Any, limit: int = 200) -> str:
    try:
        text = json.dumps(value).decode()
    except TypeError:
        text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _properties_at(document: Mapping[str, Any], path: Sequence[str | int]) -> Iterator[str]:
    """The property names that the schema at `path` knows, following local references."""
    node: Any = document
    for part in path[:-1]:
        while isinstance(node, Mapping) and "$ref" in node and part not in node:
            node = _local(document, node["$ref"])
        node = node[part] if isinstance(node, Mapping | list) else {}  # type: ignore[index]
    yield from node.get("properties", {}) if isinstance(node, Mapping) else ()


def _local(document: Mapping[str, Any], reference: str) -> Any:
    node: Any = document
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return node


def _repair(args: dict[str, Any], errors: Iterator[Any]) -> dict[str, Any] | None:
    """The arguments with wrong-typed values converted, or None if none could be."""
    repairs: list[tuple[Sequence[str | int], Any]] = []
    for error in errors:
        if error.kind.name == "type" and error.instance_path:
            converted = _convert(error.instance, error.kind.types)
            if converted is not None:
                repairs.append((error.instance_path, converted))
    return _replace(args, repairs) if repairs else None


def _convert(value: Any, types: Sequence[str]) -> Any:
    """The value as one of the types if that is unambiguous, else None."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            read = {"true": True, "false": False}.get(value.strip().lower())
        if read is not None and (_kind(read) in types or (isinstance(read, int) and "number" in types)):
            return read
    elif isinstance(value, float) and value.is_integer() and "integer" in types:
        return int(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and "string" in types:
        return str(value)
    if "array" in types and isinstance(value, (str, int, float)):
        return [value]
    return None


def _replace(node: Any, changes: Sequence[tuple[Sequence[str | int], Any]]) -> Any:
    copy: Any = dict(node) if isinstance(node, Mapping) else list(node)
    deeper: dict[str | int, list[tuple[Sequence[str | int], Any]]] = {}
    for path, value in changes:
        if len(path) == 1:
            copy[path[0]] = value
        else:
            deeper.setdefault(path[0], []).append((path[1:], value))
    for part, inner in deeper.items():
        copy[part] = _replace(copy[part], inner)
    return copy
