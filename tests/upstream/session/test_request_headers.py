"""Headers beside a request: what both sides must agree on, held against what the official library makes of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from toolreeve.upstream.session.header_params import InvalidHeaderParam, read_header_params
from toolreeve.upstream.session.request_headers import RequestHeaders, encode, header_params_problem

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
        "x-mcp-header": {"type": "string", "default": {"x-mcp-header": "data, no mark"}},
    },
}


@given(value=st.text() | st.text(alphabet=" =?base64Zz\t\n"))
def test_a_value_survives_as_the_official_library_reads_it(value: str) -> None:
    assert encode(value) == inbound.encode_header_value(value)
    assert inbound.decode_header_value(encode(value)) == value
    assert encode(value).isascii()
    assert encode(value).isprintable()


def test_header_params_are_repeated_in_headers() -> None:
    arguments = {"region": " east", "count": 3, "deep": {"flag": True}, "other": 1}
    params = {"name": "work", "arguments": arguments}

    headers = RequestHeaders().build("2026-07-28", "tools/call", params, {"work": SCHEMA})

    assert headers == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "work",
        "Mcp-Param-Region": "=?base64?IGVhc3Q=?=",
        "Mcp-Param-Count": "3",
        "Mcp-Param-Flag": "true",
    }
    assert inbound.validate_mcp_param_headers(SCHEMA, arguments, headers) is None


@pytest.mark.parametrize("arguments", [{}, {"deep": 7}, {"region": None, "count": [1]}, {"count": 10**5000}, None, 5])
def test_what_is_not_there_or_no_plain_value_has_no_header(arguments: Any) -> None:
    params = {"name": "work", "arguments": arguments}

    headers = RequestHeaders().build("2026-07-28", "tools/call", params, {"work": SCHEMA})

    assert not [name for name in headers if name.startswith("Mcp-Param-")]


def test_a_schema_that_changed_is_read_anew() -> None:
    headers_of, params = RequestHeaders(), {"name": "work", "arguments": {"a": "1"}}

    def names(mark: str) -> set[str]:
        schema = {"properties": {"a": {"type": "string", "x-mcp-header": mark}}}
        return set(headers_of.build("2026-07-28", "tools/call", params, {"work": schema}))

    assert "Mcp-Param-One" in names("One")
    assert "Mcp-Param-Two" in names("Two")


def test_the_legacy_era_has_one_header() -> None:
    assert RequestHeaders().build("2025-06-18", "tools/call", {"name": "x"}, {}) == {
        "mcp-protocol-version": "2025-06-18"
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "Top", "type": "string"},
        {"properties": {"a": {"type": "string", "x-mcp-header": "two words"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A\r\nEvil: 1"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 7}}},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}},
        {"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}},
        {"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
        {"properties": {n: {"type": "string", "x-mcp-header": h} for n, h in {"a": "Same", "b": "same"}.items()}},
    ],
)
def test_an_ambiguous_header_param_is_refused(schema: Any) -> None:
    assert header_params_problem(schema) is not None
    assert inbound.find_invalid_x_mcp_header(schema) is not None
    params = {"name": "work", "arguments": {"a": "x", "b": "x"}}
    headers = RequestHeaders().build("2026-07-28", "tools/call", params, {"work": schema})
    assert not [name for name in headers if name.startswith("Mcp-Param-")]


keywords = st.sampled_from(["properties", "items", "anyOf", "$defs", "type", "x-mcp-header", "default", "a", "b"])
schemas = st.recursive(
    st.sampled_from(["string", "integer", "Region", "a b", 7, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords, inner, max_size=4),
    max_leaves=20,
)


@given(schema=schemas)
def test_header_params_are_the_ones_that_the_official_library_finds(schema: Any) -> None:
    if inbound.find_invalid_x_mcp_header(schema) is None:
        assert read_header_params(schema) == inbound.x_mcp_header_map(schema)
    else:
        with pytest.raises(InvalidHeaderParam):
            read_header_params(schema)


def test_a_schema_of_any_depth_is_read() -> None:
    schema: dict[str, Any] = {}
    for _ in range(20_000):
        schema = {"items": schema}

    assert read_header_params(schema) == {}
