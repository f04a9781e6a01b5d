"""Checks the tool definitions that a server lists, one by one.

A server's schema can never make us fetch anything, nor cost more than a bounded amount of work to check.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.schema import Schema
from toolreeve.upstream.tools.schema_patterns import without_costly_patterns

MAX_BYTES = 256 << 10
MAX_COST = 100_000
"""Schemas that a value may have to be checked against, with every reference written out."""


class InvalidDefinition(ValueError):
    """Says what is wrong with a definition."""


def check(definition: Any) -> dict[str, Any]:
    """The definition itself. Raises InvalidDefinition."""
    if not isinstance(definition, dict):
        raise InvalidDefinition("it is not an object")
    if not isinstance(definition.get("name"), str) or not definition["name"]:
        raise InvalidDefinition("it has no name")
    if _size(definition) > MAX_BYTES:
        raise InvalidDefinition(f"it is larger than {MAX_BYTES >> 10} KB, or nested too deep")
    for field in ("title", "description"):
        if not isinstance(definition.get(field), str | None):
            raise InvalidDefinition(f"its {field} is not a text")
    if not isinstance(definition.get("annotations"), dict | None):
        raise InvalidDefinition("its annotations are not an object")
    return definition


def _size(definition: Mapping[str, Any]) -> int:
    try:
        return len(orjson.dumps(definition))
    except TypeError:  # nested too deep to be encoded
        return MAX_BYTES + 1


def input_of(definition: Mapping[str, Any]) -> Schema:
    """The schema that checks the arguments, which are passed on as given, without defaults. Raises InvalidDefinition.

    It checks only what can be checked in reasonable time; the definition keeps the schema that the server declared.
    """
    schema = _compile(definition.get("inputSchema"), "inputSchema")
    if schema.document.get("type", "object") != "object":
        raise InvalidDefinition("its inputSchema does not describe an object")
    return schema


def output_of(definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Raises InvalidDefinition."""
    declared = definition.get("outputSchema")
    if declared is not None:
        _compile(declared, "outputSchema")
    return declared


def _compile(document: Any, field: str) -> Schema:
    if document is None:
        raise InvalidDefinition(f"its {field} is missing")
    if not isinstance(document, dict):
        raise InvalidDefinition(f"its {field} is not an object")
    try:
        too_costly = SchemaCost(document).of(document) > MAX_COST
        schema = Schema(without_costly_patterns(document), fills_defaults=False, linear=True)
        schema.check()
    except RecursionError:
        too_costly = True
    except (ToolreeveError, InvalidDefinition) as problem:
        raise InvalidDefinition(f"its {field} is {problem}") from None
    if too_costly:
        raise InvalidDefinition(f"its {field} is too costly to check")
    return schema


class SchemaCost:
    """Counts the schemas to check, with each reference replaced by its target.

    A few lines can amount to a number of thirty digits: two references to what has itself two references, and so on.
    Cycles count once: the validator remembers what it has seen.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._costs: dict[int, int] = {}
        self._anchors: dict[str, Any] = {}
        self._collect_anchors(document)

    def _collect_anchors(self, node: Any) -> None:
        if isinstance(node, dict):
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(key), str):
                    self._anchors[f"#{node[key]}"] = node
            if isinstance(node.get("$id"), str) and node is not self._document:
                raise InvalidDefinition("not one document: a part of it has an $id of its own")
        for inner in _children(node):
            self._collect_anchors(inner)

    def of(self, node: Any) -> int:
        if not isinstance(node, dict | list):
            return 0
        if (cost := self._costs.get(id(node))) is not None:
            return cost
        self._costs[id(node)] = cost = 1
        for inner in self._checked_children(node):
            cost += self.of(inner)
            if cost > MAX_COST:
                break
        self._costs[id(node)] = cost
        return cost

    def _checked_children(self, node: Any) -> Iterator[Any]:
        if isinstance(node, list):
            yield from node
            return
        yield from (value for key, value in node.items() if key not in _NOT_CHECKED)
        yield from (self._target(node[key]) for key in _REFERENCES if isinstance(node.get(key), str))

    def _target(self, reference: str) -> Any:
        """Within the document, by pointer or by anchor; the validator refuses any other."""
        whole = self._document.get("$id")
        if isinstance(whole, str) and whole and reference.startswith(whole.rstrip("#")):
            reference = reference[len(whole.rstrip("#")) :] or "#"
        if reference in self._anchors:
            return self._anchors[reference]
        if reference.startswith("#"):
            return _at(self._document, unquote(reference[1:]))
        if not reference.startswith(_STANDARD):
            raise InvalidDefinition(f"not complete: it refers to {reference[:100]!a}, and nothing is fetched")
        return None


def _at(node: Any, pointer: str) -> Any:
    for part in filter(None, pointer.split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if name.isdecimal() and int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key not in _VALUES)
    elif isinstance(node, list):
        yield from node


_STANDARD = ("https://json-schema.org/", "http://json-schema.org/")
_REFERENCES = ("$ref", "$dynamicRef")
_VALUES = frozenset({"const", "enum", "default", "examples"})
_NOT_CHECKED = _VALUES | {"$defs", "definitions", *_REFERENCES}
