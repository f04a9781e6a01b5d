"""Valid and invalid tool definitions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ToolError
from toolreeve.upstream.tools.definition import InvalidDefinition, check, input_of, output_of


def defined(**fields: Any) -> dict[str, Any]:
    return {"name": "t", "inputSchema": {"type": "object"}} | fields


def laughing(levels: int, reference: str = "#/$defs/d{}", mark: str = "") -> dict[str, Any]:
    """Each definition refers twice to the next: a few lines, and more to check than there are grains of sand."""
    rest = {
        f"d{level}": ({mark: f"d{level}"} if mark else {})
        | {"allOf": [{"$ref": reference.format(level + 1)}, {"$ref": reference.format(level + 1)}]}
        for level in range(levels)
    }
    last = {"type": "object"} | ({mark: f"d{levels}"} if mark else {})
    return {"type": "object", "$ref": reference.format(0), "$defs": rest | {f"d{levels}": last}}


@pytest.mark.parametrize(
    "definition",
    [
        None,
        [],
        {},
        {"name": 3, "inputSchema": {}},
        {"name": "", "inputSchema": {}},
        defined(description=["x"]),
        defined(annotations="safe"),
        defined(description="x" * (1 << 20)),
    ],
)
def test_an_invalid_definition_is_refused(definition: Any) -> None:
    with pytest.raises(InvalidDefinition):
        check(definition)


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "string"},
        {"type": "nonsense"},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "https://attacker.example/schema.json"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"properties": {"a": {"$id": "https://example.org/a"}}},
    ],
)
def test_a_schema_that_cannot_be_checked_here_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidDefinition):
        input_of(defined(inputSchema=schema))


@pytest.mark.parametrize(
    "schema",
    [
        laughing(60),
        laughing(60, "#d{}", "$anchor"),
        laughing(60, "#/%24defs/d{}"),
        laughing(5000),
        {"type": "object", "$id": "https://x.example/s"} | laughing(60, "https://x.example/s#/$defs/d{}"),
    ],
)
def test_a_schema_that_grows_without_bound_when_it_is_checked_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidDefinition, match=r"costly|complete|usable"):
        input_of(defined(inputSchema=schema))


def test_a_schema_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"x": schema}}

    with pytest.raises(InvalidDefinition):
        check(defined(inputSchema=schema))


def test_a_schema_that_refers_to_itself_is_usable() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}}}

    schema = input_of(defined(inputSchema=tree))

    assert schema.parse({"left": {"right": {"n": 1}}}) == {"left": {"right": {"n": 1}}}
    with pytest.raises(ToolError):
        schema.parse({"left": {"right": {"n": "x"}}})


def test_defaults_are_left_to_the_server_that_knows_them() -> None:
    declared = {"type": "object", "properties": {"a": {"type": "string", "default": None}}}

    assert input_of(defined(inputSchema=declared)).parse({}) == {}


def test_definitions_are_kept_as_they_came() -> None:
    declared = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {"at": {"$ref": "#/$defs/point"}},
        "x-vendor": {"kept": True},
    }

    assert input_of(defined(inputSchema=declared)).document is declared
    assert output_of(defined(outputSchema=declared)) is declared


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "$ref", "$defs", "allOf", "a", "items", "name", "inputSchema", "$id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_a_server_lists_is_usable_or_refused(candidate: Any) -> None:
    try:
        input_of(check(candidate))
        input_of({"inputSchema": candidate})
    except InvalidDefinition:
        return
