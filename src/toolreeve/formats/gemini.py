"""What does a JSON Schema become where only Gemini's part of OpenAPI is understood?

The declared schema guides the model; the road still checks every call against the tool's own schema. So what cannot be
said may be left out here. A schema comes from anywhere and may refer to itself or unfold without end: its depth and the
number of its parts are bounded.
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
_UNSAID: dict[str, Any] = {"type": "string"}

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
            return kept | _UNSAID
        types, nullable = _types(schema)
        if nullable:
            kept["nullable"] = True
        if branches := _listed(schema, "anyOf") or _listed(schema, "oneOf"):
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
        elif options := _listed(schema, "enum"):
            made |= _enum(kind, options, schema.get("description"))
        return made

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties = _mapped(schema, "properties")
        if not properties:
            return {}
        made: dict[str, Any] = {"properties": {name: self.of(each, depth + 1) for name, each in properties.items()}}
        if required := [name for name in properties if name in _listed(schema, "required")]:
            made["required"] = required
        return made

    def _any_of(self, branches: Sequence[Any], depth: int) -> dict[str, Any]:
        """Alternatives, of which `null` is said as `nullable`; a single one that remains is said plainly."""
        named = [branch for branch in branches if branch != {"type": "null"}]
        nullable: dict[str, Any] = {"nullable": True} if len(named) < len(branches) else {}
        said = [self.of(branch, depth + 1) for branch in named]
        return (said[0] if len(said) == 1 else {"anyOf": said}) | nullable

    def _plain(self, schema: Any, depth: int) -> Schema:
        """The schema with its local reference followed, `allOf` merged and `const` said as an enumeration."""
        if not isinstance(schema, Mapping) or self._exhausted(depth):
            return {}
        if "$ref" in schema:
            target = self._plain(self._target(schema["$ref"]), depth + 1)
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        if parts := _listed(schema, "allOf"):
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
    """Gemini knows only enumerations of strings; others are told in words."""
    named = [option for option in options if option is not None]
    if kind == "string" and all(isinstance(option, str) for option in named):
        return {"enum": named}
    told = f"One of {', '.join(map(str, named))}."
    return {"description": f"{description} {told}" if description else told}


def _types(schema: Schema) -> tuple[list[str], bool]:
    """The types a schema names or implies, and whether null is one of them."""
    declared, options = schema.get("type"), _listed(schema, "enum")
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
        properties = {**_mapped(whole, "properties"), **_mapped(part, "properties")}
        required = [*_listed(whole, "required"), *_listed(part, "required")]
        whole |= {key: value for key, value in part.items() if key != "allOf"}
        whole |= {"properties": properties} if properties else {}
        whole |= {"required": required} if required else {}
    return whole


def _listed(schema: Schema, key: str) -> Sequence[Any]:
    value = schema.get(key)
    return value if isinstance(value, list | tuple) else ()


def _mapped(schema: Schema, key: str) -> Schema:
    value = schema.get(key)
    return value if isinstance(value, Mapping) else {}
