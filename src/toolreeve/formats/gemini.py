"""JSON Schema in the subset of OpenAPI that Gemini understands.

The declared schema guides the model; the pipeline still checks every call against the tool's own schema. So what cannot
be expressed is left out here. A schema comes from anywhere and may refer to itself or unfold without end: its depth and
the number of its parts are bounded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_DEPTH = 10
MAX_PARTS = 2000
_KEPT = (
    *("title", "description", "default", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
)
_FORMATS: Mapping[str, tuple[str, ...]] = {
    "string": ("date-time", "enum"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}
_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    type(None): "null",
}
_FALLBACK: dict[str, Any] = {"type": "string"}

Schema = Mapping[str, Any]


def gemini_schema(document: Schema) -> dict[str, Any]:
    return _Translation(document).of(document, 0)


class _Translation:
    def __init__(self, document: Schema) -> None:
        self._document = document
        self._parts = 0

    def of(self, schema: Any, depth: int) -> dict[str, Any]:
        schema = self._plain(schema, depth)
        kept = {key: schema[key] for key in _KEPT if key in schema}
        if self._exhausted(depth):
            return kept | _FALLBACK
        types, nullable = _types(schema)
        if nullable:
            kept["nullable"] = True
        if branches := _list_at(schema, "anyOf") or _list_at(schema, "oneOf"):
            return self._any_of(branches, depth) | kept
        if len(types) > 1:
            return kept | {"anyOf": [self._typed(each, schema, depth) for each in types]}
        return kept | self._typed(types[0] if types else "string", schema, depth)

    def _exhausted(self, depth: int) -> bool:
        self._parts += 1
        return depth > MAX_DEPTH or self._parts > MAX_PARTS

    def _typed(self, kind: str, schema: Schema, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": kind}
        if schema.get("format") in _FORMATS.get(kind, ()):
            made["format"] = schema["format"]
        if kind == "array":
            made["items"] = self.of(schema.get("items", {}), depth + 1)
        elif kind == "object":
            made |= self._object(schema, depth)
        elif options := _list_at(schema, "enum"):
            made |= _enum(kind, options, schema.get("description"))
        return made

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties = _mapping_at(schema, "properties")
        if not properties:
            return {}
        made: dict[str, Any] = {"properties": {name: self.of(each, depth + 1) for name, each in properties.items()}}
        if required := [name for name in properties if name in _list_at(schema, "required")]:
            made["required"] = required
        return made

    def _any_of(self, branches: Sequence[Any], depth: int) -> dict[str, Any]:
        """Alternatives; `null` becomes `nullable`, and a single remaining one is not wrapped."""
        types = [branch for branch in branches if branch != {"type": "null"}]
        translated = [self.of(branch, depth + 1) for branch in types]
        schema = translated[0] if len(translated) == 1 else {"anyOf": translated}
        return schema | {"nullable": True} if len(types) < len(branches) else schema

    def _plain(self, schema: Any, depth: int) -> Schema:
        """The schema with its local reference resolved, `allOf` merged and `const` as an enumeration."""
        if not isinstance(schema, Mapping) or self._exhausted(depth):
            return {}
        if "$ref" in schema:
            target = self._plain(self._target(schema["$ref"]), depth + 1)
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        if parts := _list_at(schema, "allOf"):
            schema = _merged([*(self._plain(part, depth + 1) for part in parts), schema])
        return {**schema, "enum": [schema["const"]]} if "const" in schema else schema

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return {}
        node: Any = self._document
        for part in reference.removeprefix("#").strip("/").split("/"):
            if part:
                node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
        return node


def _enum(kind: str, options: Sequence[Any], description: Any) -> dict[str, Any]:
    """Gemini has only enumerations of strings; others are described in words."""
    named = [option for option in options if option is not None]
    if kind == "string" and all(isinstance(option, str) for option in named):
        return {"enum": named}
    text = f"One of {', '.join(map(str, named))}."
    return {"description": f"{description} {text}" if description else text}


def _types(schema: Schema) -> tuple[list[str], bool]:
    """The types a schema names or implies, and whether null is one of them."""
    declared = schema.get("type")
    options = _list_at(schema, "enum")
    if isinstance(declared, str):
        named = [declared]
    elif isinstance(declared, list | tuple):
        named = [str(each) for each in declared]
    elif "properties" in schema:
        named = ["object"]
    elif "items" in schema:
        named = ["array"]
    else:
        named = list(dict.fromkeys(_TYPES.get(type(option), "object") for option in options))
    return [each for each in named if each != "null"], "null" in named or None in options


def _merged(parts: Sequence[Schema]) -> Schema:
    whole: dict[str, Any] = {}
    for part in parts:
        properties = {**_mapping_at(whole, "properties"), **_mapping_at(part, "properties")}
        required = [*_list_at(whole, "required"), *_list_at(part, "required")]
        whole |= {key: value for key, value in part.items() if key != "allOf"}
        if properties:
            whole["properties"] = properties
        if required:
            whole["required"] = required
    return whole


def _list_at(schema: Schema, key: str) -> Sequence[Any]:
    value = schema.get(key)
    return value if isinstance(value, list | tuple) else ()


def _mapping_at(schema: Schema, key: str) -> Schema:
    value = schema.get(key)
    return value if isinstance(value, Mapping) else {}
