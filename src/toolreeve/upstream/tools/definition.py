"""Can this definition of a tool be used? What a server lists is taken one by one; a bad one is left out, with a reason.

A schema from elsewhere is never allowed to fetch anything, and to cost more than a bounded amount to check.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.schema import Schema
from toolreeve.upstream.tools.schema_patterns import checkable

MAX_BYTES = 256 << 10
MAX_COST = 100_000
"""Schemas that a value may have to be checked against, with every reference written out."""


class Unusable(ValueError):
    """Says what is wrong with a definition."""


def check(definition: Any) -> dict[str, Any]:
    """The definition, if it is one. Raises Unusable."""
    if not isinstance(definition, dict):
        raise Unusable("it is not an object")
    if not isinstance(definition.get("name"), str) or not definition["name"]:
        raise Unusable("it has no name")
    if _size(definition) > MAX_BYTES:
        raise Unusable(f"it is larger than {MAX_BYTES >> 10} KB, or nested too deep")
    for field in ("title", "description"):
        if not isinstance(definition.get(field), str | None):
            raise Unusable(f"its {field} is not a text")
    if not isinstance(definition.get("annotations"), dict | None):
        raise Unusable("its annotations are not an object")
    return definition


def _size(definition: Mapping[str, Any]) -> int:
    try:
        return len(orjson.dumps(definition))
    except TypeError:  # more nested than it writes
        return MAX_BYTES + 1


def input_of(definition: Mapping[str, Any]) -> Schema:
    """What checks the arguments: they are handed on as given, without defaults filled in. Raises Unusable.

    It checks no more than can be checked in reasonable time: what the server declared is in its definition.
    """
    schema = _compiled(definition.get("inputSchema"), "inputSchema")
    if schema.document.get("type", "object") != "object":
        raise Unusable("its inputSchema does not describe an object")
    return schema


def output_of(definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Raises Unusable."""
    declared = definition.get("outputSchema")
    if declared is not None:
        _compiled(declared, "outputSchema")
    return declared


def _compiled(document: Any, field: str) -> Schema:
    if not isinstance(document, dict):
        raise Unusable(f"its {field} is missing" if document is None else f"its {field} is not an object")
    try:
        costly = Weighing(document).cost(document) > MAX_COST
        schema = Schema(checkable(document), fills_defaults=False, linear=True)
        schema.check()
    except RecursionError:
        costly = True
    except (ToolreeveError, Unusable) as problem:
        raise Unusable(f"its {field} is {problem}") from None
    if costly:
        raise Unusable(f"its {field} is too costly to check")
    return schema


class Weighing:
    """How many schemas are there to check, with each reference replaced by what it refers to?

    A few lines can say a number with thirty digits: two references to what has itself two references, and so on.
    Circles count once: the validator remembers what it has seen.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._known: dict[int, int] = {}
        self._anchors: dict[str, Any] = {}
        self._collect(document)

    def _collect(self, node: Any) -> None:
        if isinstance(node, dict):
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(key), str):
                    self._anchors[f"#{node[key]}"] = node
            if isinstance(node.get("$id"), str) and node is not self._document:
                raise Unusable("not one document: a part of it has an $id of its own")
        for inner in _parts(node):
            self._collect(inner)

    def cost(self, node: Any) -> int:
        if not isinstance(node, dict | list):
            return 0
        if (cost := self._known.get(id(node))) is not None:
            return cost
        self._known[id(node)] = cost = 1
        for inner in self._within(node):
            cost += self.cost(inner)
            if cost > MAX_COST:
                break
        self._known[id(node)] = cost
        return cost

    def _within(self, node: Any) -> Iterator[Any]:
        if isinstance(node, list):
            yield from node
            return
        yield from (value for key, value in node.items() if key not in _NOT_CHECKED)
        yield from (self._referred(node[key]) for key in _REFERENCES if isinstance(node.get(key), str))

    def _referred(self, reference: str) -> Any:
        """Within the document, by place or by anchor; what is elsewhere the validator refuses."""
        whole = self._document.get("$id")
        if isinstance(whole, str) and whole and reference.startswith(whole.rstrip("#")):
            reference = reference[len(whole.rstrip("#")) :] or "#"
        if reference in self._anchors:
            return self._anchors[reference]
        if not reference.startswith("#"):
            if not reference.startswith(_STANDARD):
                raise Unusable(f"not complete: it refers to {reference[:100]!a}, and nothing is fetched")
            return None
        return _at(self._document, unquote(reference[1:]))


def _at(node: Any, pointer: str) -> Any:
    for part in filter(None, pointer.split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if name.isdecimal() and int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node


def _parts(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key not in _VALUES)
    elif isinstance(node, list):
        yield from node


_STANDARD = ("https://json-schema.org/", "http://json-schema.org/")
_REFERENCES = ("$ref", "$dynamicRef")
_VALUES = frozenset({"const", "enum", "default", "examples"})
_NOT_CHECKED = _VALUES | {"$defs", "definitions", *_REFERENCES}
