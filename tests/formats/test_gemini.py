from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.formats.gemini import MAX_PARTS, gemini_schema

UNDERSTOOD = {
    *("type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required"),
    *("minProperties", "maxProperties", "minLength", "maxLength", "pattern", "anyOf", "default", "items"),
    *("minimum", "maximum"),
}


def prop(schema: dict[str, Any], **definitions: Any) -> Any:
    """What a property of this schema becomes."""
    whole = {"type": "object", "properties": {"x": schema}, "$defs": definitions, "additionalProperties": False}
    return gemini_schema(whole)["properties"]["x"]


@pytest.mark.parametrize(
    ("schema", "converted"),
    [
        ({"type": "string", "minLength": 1}, {"type": "string", "minLength": 1}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "integer", "nullable": True}),
        (
            {"oneOf": [{"type": "integer"}, {"const": "a"}]},
            {"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["a"]}]},
        ),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "description": "One of 1, 2."}),
        ({"enum": [1], "description": "Size."}, {"type": "integer", "description": "Size. One of 1."}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": {"type": "number"}}, {"type": "array", "items": {"type": "number"}}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 9}, {"type": "number", "maximum": 9}),
        ({}, {"type": "string"}),
        (True, {"type": "string"}),
        ({"$ref": "#/$defs/point"}, {"type": "object", "properties": {"y": {"type": "integer"}}, "required": ["y"]}),
        ({"$ref": "#/$defs/name", "description": "Mine."}, {"type": "string", "description": "Mine."}),
        ({"$ref": "https://example.com/schema.json"}, {"type": "string"}),
        ({"$ref": "#/nowhere"}, {"type": "string"}),
        (
            {"allOf": [{"$ref": "#/$defs/point"}, {"properties": {"z": {"type": "string"}}, "required": ["z"]}]},
            {
                "type": "object",
                "properties": {"y": {"type": "integer"}, "z": {"type": "string"}},
                "required": ["y", "z"],
            },
        ),
    ],
)
def test_a_schema_is_said_in_what_gemini_understands(schema: dict[str, Any], converted: dict[str, Any]) -> None:
    point = {"type": "object", "properties": {"y": {"type": "integer"}}, "required": ["y"]}

    assert prop(schema, point=point, name={"type": "string", "description": "Theirs."}) == converted


def size(node: Any) -> int:
    if isinstance(node, dict):
        return 1 + sum(size(each) for each in node.values())
    return sum(size(each) for each in node) if isinstance(node, list) else 0


@pytest.mark.parametrize(
    "document",
    [
        {"type": "object", "properties": {name: {"$ref": "#"} for name in "abcdefgh"}},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}] * 10},
        {"anyOf": [{"$ref": "#"}] * 10},
        {
            "$defs": {str(n): {"properties": {k: {"$ref": f"#/$defs/{n + 1}"} for k in "abcdef"}} for n in range(30)},
            "$ref": "#/$defs/0",
        },
    ],
)
def test_a_schema_that_unfolds_without_end_is_cut(document: dict[str, Any]) -> None:
    assert size(gemini_schema(document)) <= 4 * MAX_PARTS


KEYS = [
    "type",
    "properties",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
    "$ref",
    "required",
    "format",
    "title",
]
ANYTHING = st.recursive(
    st.sampled_from(["string", "object", "array", "null", "#", "#/properties/a", "x", 1, None, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "a"]), inner, max_size=4),
    max_leaves=12,
)


def schemas_of(node: dict[str, Any]) -> list[dict[str, Any]]:
    below = [
        *node.get("properties", {}).values(),
        *node.get("anyOf", ()),
        *([node["items"]] if "items" in node else []),
    ]
    return [node, *(inner for each in below for inner in schemas_of(each))]


@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=5))
def test_whatever_goes_in_only_what_gemini_understands_comes_out(document: dict[str, Any]) -> None:
    for schema in schemas_of(gemini_schema(document)):
        assert set(schema) <= UNDERSTOOD
        assert isinstance(schema.get("type", ""), str)
        assert "type" in schema or "anyOf" in schema
