"""Parameters of a tool: declared, or only named by the template."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.schema import Schema
from toolreeve.core.suggest import did_you_mean, find_similar
from toolreeve.scripted.syntax import ITEM_NAMES, Node, Section, Value
from toolreeve.scripted.template import ValueRules

_NUMERIC = ("integer", "number", "boolean")
_SCALARS = ["string", "number", "integer", "boolean"]
_SCHEMA_KEYS = ("description", "default", "enum", "pattern", "minimum", "maximum")


@dataclass(frozen=True, slots=True)
class ParameterProblem:
    text: str
    path: tuple[str | int, ...]
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """`implied` are those that only the template names."""

    schema: Mapping[str, Any]
    rules: Mapping[str, ValueRules]
    defaults: Mapping[str, Any]
    implied: tuple[str, ...] = ()
    problems: list[ParameterProblem] = field(default_factory=list)


def read_parameters(declared: Sequence[Mapping[str, Any]], nodes: Sequence[Node]) -> Parameters:
    properties: dict[str, dict[str, Any]] = {}
    problems: list[ParameterProblem] = []
    for index, each in enumerate(declared):
        if each["name"] in properties:
            problems.append(ParameterProblem("is declared twice", ("parameters", index, "name"), "keep one of them"))
        properties[each["name"]] = _schema(each)
        problems += _problems(each, index)
    required = [each["name"] for each in declared if each.get("required") and "default" not in each]
    implied = {name: use for name, use in _uses(nodes).items() if name not in properties}
    for name in implied:
        if similar := find_similar(name, properties, limit=1, cutoff=0.8):
            problems.append(_misspelt(name, similar))
    properties |= {name: {} if use.section else {"type": _SCALARS} for name, use in implied.items()}
    required += [name for name, use in implied.items() if use.required]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Parameters(
        schema=schema,
        rules={each["name"]: _rules(each) for each in declared},
        defaults={each["name"]: each["default"] for each in declared if "default" in each},
        implied=tuple(implied),
        problems=problems,
    )


def _schema(parameter: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: parameter[key] for key in _SCHEMA_KEYS if key in parameter}
    return {"type": parameter.get("type", "string"), **kept}


def _rules(parameter: Mapping[str, Any]) -> ValueRules:
    return ValueRules(
        numeric=parameter.get("type") in _NUMERIC,
        choices=tuple(parameter["enum"]) if "enum" in parameter else None,
        allow_dash=bool(parameter.get("allow_dash")),
        allow_code=bool(parameter.get("allow_code")),
    )


def _problems(parameter: Mapping[str, Any], index: int) -> Iterator[ParameterProblem]:
    schema = Schema({"type": "object", "properties": {"value": _schema(parameter)}})
    try:
        Schema(_schema(parameter)).check()
    except ToolreeveError as invalid:
        yield ParameterProblem(str(invalid), ("parameters", index), "correct the pattern")
        return
    if "default" in parameter:
        for problem in schema.problems({"value": parameter["default"]}):
            yield ParameterProblem(
                problem.text, ("parameters", index, "default"), "give a default of the parameter's own type"
            )
    bare = Schema({"type": "object", "properties": {"value": {"type": parameter.get("type", "string")}}})
    for place, choice in enumerate(parameter.get("enum", ())):
        for problem in bare.problems({"value": choice}):
            yield ParameterProblem(
                problem.text, ("parameters", index, "enum", place), "list values of the parameter's own type"
            )


def _misspelt(name: str, similar: list[str]) -> ParameterProblem:
    problem = f"uses {name!r}, which is not declared ({did_you_mean(similar)})"
    return ParameterProblem(problem, ("script",), "declare it below parameters")


@dataclass(slots=True)
class _Use:
    required: bool = False
    section: bool = False


def _uses(nodes: Sequence[Node]) -> dict[str, _Use]:
    """The names that a template takes from its caller. Inside a section that iterates over a list, names may be those
    of its items instead."""
    found: dict[str, _Use] = {}
    for node, guarded, iterating in _placed(nodes):
        expression = node.expression
        use = found.get(expression.root, _Use())
        if iterating and expression.root not in found and not isinstance(node, Section):
            continue
        if expression.root in ITEM_NAMES and iterating:
            continue
        if isinstance(node, Section):
            use.section = True
        elif not guarded and not expression.has_default:
            use.required = True
        found[expression.root] = use
    return found


def _placed(
    nodes: Sequence[Node], *, guarded: bool = False, iterating: bool = False
) -> Iterator[tuple[Value | Section, bool, bool]]:
    for node in nodes:
        if isinstance(node, Value):
            yield node, guarded, iterating
        elif isinstance(node, Section):
            yield node, guarded, iterating
            yield from _placed(node.body, guarded=True, iterating=iterating or (node.iterates and not node.inverted))
