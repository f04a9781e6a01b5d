"""Arguments against a schema: all problems at once, hostile shapes included."""

import socket
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.schema import Schema

DOCUMENT = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer", "default": 10},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
        "mode": {"enum": ["read", "write"]},
        "deep": {"type": "object"},
    },
    "required": ["path"],
    "additionalProperties": False,
}
SCHEMA = Schema(DOCUMENT)


def refusal(args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        SCHEMA.parse(args)
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    return caught.value


def test_defaults_are_filled_in() -> None:
    assert SCHEMA.parse({"path": "a"}) == {"path": "a", "lines": 10}


def test_the_callers_arguments_are_left_as_they_are() -> None:
    given_args = {"path": "a", "lines": "7"}

    SCHEMA.parse(given_args)

    assert given_args == {"path": "a", "lines": "7"}


def test_all_problems_are_reported_at_once_with_their_pointers() -> None:
    error = refusal({"pth": "x", "lines": "many", "mode": "raed"})

    assert error.detail == [
        {"pointer": "/lines", "problem": 'expected integer, got string "many"'},
        {"pointer": "/mode", "problem": """must be one of ["read","write"], got "raed" (did you mean 'read'?)"""},
        {"pointer": "", "problem": "unknown 'pth' (did you mean 'path'?); known are path, lines, tags, mode, deep"},
        {"pointer": "/path", "problem": "is required but missing"},
    ]
    assert error.message.startswith("4 problems with the arguments: /lines: expected integer")


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ({"lines": "7"}, {"lines": 7}),
        ({"tags": "a"}, {"tags": ["a"]}),
        ({"path": 7}, {"path": "7"}),
        ({"lines": 7.0}, {"lines": 7}),
    ],
)
def test_a_simple_slip_is_repaired(slip: dict[str, Any], meant: dict[str, Any]) -> None:
    assert SCHEMA.parse({"path": "p"} | slip) == {"path": "p", "lines": 10} | meant


def test_json_nested_ten_thousand_deep_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"a": deep}

    assert "nested deeper than 64 levels" in refusal({"path": "x", "deep": deep}).message


def test_fifty_megabytes_are_refused() -> None:
    assert "more than 16 MB" in refusal({"path": "x" * 50_000_000}).message


@pytest.mark.parametrize(
    "args", [{"path": "a\udcff"}, {"path": "a", "deep": {"b\ud800": 1}}, {"path": "a", "deep": {"k": ["\udfff"]}}]
)
def test_text_that_is_not_utf8_is_refused(args: dict[str, Any]) -> None:
    assert "not valid UTF-8" in refusal(args).message


@pytest.mark.parametrize("args", [[], "text", None, 3])
def test_arguments_that_are_not_an_object_are_refused(args: Any) -> None:
    assert "expected an object" in refusal(args).message


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), [object()]])
def test_values_that_are_not_json_are_refused_with_their_pointer(value: Any) -> None:
    schema = Schema({"type": "object", "properties": {"path": {"type": "string"}}})

    with pytest.raises(ToolError, match="/path: is not a JSON value") as refused:
        schema.parse({"path": value})

    assert refused.value.code is ErrorCode.INVALID_PARAMS


def test_a_flood_of_unknown_arguments_is_reported_briefly() -> None:
    schema = Schema({"type": "object", "properties": {"path": {}}, "additionalProperties": False})

    with pytest.raises(ToolError, match="and 4980 more; known are path") as refused:
        schema.parse({f"k{number}": 1 for number in range(5000)})

    assert len(refused.value.message) < 1000


def test_keys_that_are_not_strings_are_refused() -> None:
    assert "not a string" in refusal({"path": "a", "deep": {1: 2}}).message


def fault(document: Mapping[Any, Any], *, linear: bool = False) -> str:
    with pytest.raises(ToolreeveError) as refused:
        Schema(document, linear=linear).check()
    before, _, message = str(refused.value).partition("not a usable JSON Schema: ")
    assert before == ""
    return message


def test_a_schema_cannot_reach_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"

        message = fault({"type": "object", "properties": {"x": {"$ref": url}}})

        assert (
            message
            == f"/properties/x/$ref: '{url}' cannot be resolved; fix: define it below $defs, because nothing is fetched"
        )
        with pytest.raises(BlockingIOError):
            listener.accept()


NESTED: dict[str, Any] = {}
for _ in range(300):
    NESTED = {"not": NESTED}
TYPES = '["array","boolean","integer","null","number","object","string"]'
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "objekt"}, f"/type: must be one of {TYPES}, got \"objekt\" (did you mean 'object'?)"),
        (
            {"properties": {"a/b": {"type": ["null", "q"]}}},
            f'/properties/a~1b/type/1: must be one of {TYPES}, got "q"',
        ),
        ({"$schema": DRAFT_7, "items": [{"type": 5}]}, f"/items/0/type: must be one of {TYPES}, got 5"),
        ({"properties": {"a": {"required": True}}}, "/properties/a/required: expected array, got boolean true"),
        ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength: -1 is less than the minimum of 0"),
        (
            {"properties": {"a": {"pattern": "("}}},
            '/properties/a/pattern: "(" is not a valid regular expression; fix: correct it',
        ),
        (
            {"allOf": [{"$ref": "#/$defs/gone"}]},
            "/allOf/0/$ref: '#/$defs/gone' cannot be resolved; fix: define it below $defs, because nothing is fetched",
        ),
        ({"$schema": "urn:x"}, "/$schema: 'urn:x' cannot be resolved; fix: leave it out, or name a published draft"),
        ({"$id": "::x"}, "/$id: '::x' cannot be resolved; fix: leave it out, or give a URI"),
        ({"title": "\ud800"}, "/title: is not valid UTF-8 text (it holds a lone surrogate)"),
        ({"x": {1, 2}}, "/x: is not a JSON value: Object of type set is not JSON serializable"),
        (NESTED, f"{'/not' * 20}: is nested deeper than 64 levels"),
    ],
)
def test_a_broken_schema_is_refused_with_the_place_and_what_is_expected_there(document: Any, message: str) -> None:
    assert fault(document) == message


def test_a_pattern_without_linear_time_is_refused_if_required() -> None:
    message = fault({"properties": {"a": {"pattern": "(?=a)b"}}}, linear=True)

    assert message.endswith(
        "is not a valid regular expression; fix: correct it, without look-around and back-references"
    )


@pytest.mark.parametrize(
    "document",
    [
        {"properties": {"a\nb\x1b[2J": {"type": "x\ny"}}},
        {"properties": {"a" * 9000: {"type": "x"}}},
        {"properties": {"a": {"type": "x" * 9000}}},
        {"properties": {"a": {"pattern": "(" * 9000}}},
        {"properties": {"a": {"$ref": "#/" + "x" * 9000}}},
        {"properties": {"a": {"$ref": "#/x\ny"}}},
        {"properties": {"a": {"$ref": "#/it's 'quoted'"}}},
        {"$id": "\n" * 9000},
        {1: 2},
    ],
)
def test_any_problem_of_a_schema_is_reported_in_one_short_line(document: Any) -> None:
    message = fault(document)

    assert message.isprintable()
    assert 0 < len(message) <= 600


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["path", "lines", "tags", "mode", "deep", "other"]), JSON))
def test_any_arguments_are_valid_afterwards_or_refused_with_a_code(args: dict[str, Any]) -> None:
    try:
        parsed = SCHEMA.parse(args)
    except ToolError:
        return
    assert not SCHEMA.problems(parsed)


def test_of_several_forms_the_one_of_the_given_type_is_explained() -> None:
    form = {"type": "object", "properties": {"code": {"type": "integer"}}, "required": ["code"]}
    schema = Schema({"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, form]}}})

    with pytest.raises(ToolError, match="/a/code: is required but missing"):
        schema.parse({"a": {"cod": 3}})
