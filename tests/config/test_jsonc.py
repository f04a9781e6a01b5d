import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.config.jsonc import Array, Node, Object, Scalar, json_document, parse_jsonc, plain
from toolreeve.core.errors import ConfigError


def test_comments_trailing_commas_and_a_byte_order_mark_are_fine() -> None:
    text = '\ufeff// head\n{ "a": [1, 2.5e1, {"b": null,},], /* why\n */ "c": "//no\\u00e9", // tail\n}\r\n'

    document = json_document(text, "f.json")

    assert document.value == {"a": [1, 25.0, {"b": None}], "c": "//noé"}
    assert (document.line(("a", 2, "b")), document.line(("c",)), document.line(("c", "none"))) == (2, 3, 3)


@pytest.mark.parametrize("text", ["", "  \n", "// nothing\n", "/* nothing */", "\ufeff"])
def test_a_file_may_hold_nothing(text: str) -> None:
    assert parse_jsonc(text, "f.json") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{\n"a": 1,\n"a": 2}', "f.json:3: is not valid JSON: duplicate key 'a' (first on line 2)"),
        ('{"a" 1}', "expected ':' after 'a'"),
        ('{"a": 1 "b": 2}', "expected ',' or '}'"),
        ("[1,,2]", "expected a value"),
        ("[,]", "expected a value"),
        ("{,}", "expected a key in double quotes"),
        ("{a: 1}", "expected a key in double quotes"),
        ("['a']", "expected a value"),
        ("[01]", "expected a value"),
        ("[1.]", "expected a value"),
        ("[NaN]", "expected a value"),
        ("[tru]", "expected a value"),
        ('["\\x"]', "invalid value"),
        ('["a\nb"]', "expected a value"),
        ('{"a": 1} x', "unexpected text after the end"),
        ("/* open", "expected a value"),
        ('{"a": 1', "expected ',' or '}'"),
        ("[" * 5000, "nested deeper"),
    ],
)
def test_invalid_json_is_reported_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jsonc(text, "f.json")

    assert problem in str(caught.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(_JSON, st.sampled_from([None, 1, 2, "\t"]))
def test_whatever_the_standard_library_writes_is_read_alike(value: Any, indent: int | str | None) -> None:
    assert plain(parse_jsonc(json.dumps(value, indent=indent), "f.json")) == value


@given(_JSON)
def test_every_value_knows_its_own_text(value: Any) -> None:
    text = "\n// x\n" + json.dumps(value, indent=2) + "\n"

    def check(node: Node) -> None:
        assert json.loads(text[node.start : node.end]) == plain(node)
        for inner in node.items if isinstance(node, Array) else ():
            check(inner)
        for member in node.members if isinstance(node, Object) else ():
            assert text[member.start] == '"'
            check(member.node)

    root = parse_jsonc(text, "f.json")
    assert isinstance(root, (Array, Object, Scalar))
    check(root)


@given(st.text(alphabet='{}[]",:/*\n 1atrue\\', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jsonc(text, "f.json")
    except ConfigError as problem:
        assert problem.line is not None  # noqa: PT017
