from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.cli.arguments import BadArgument, parse_object, parse_pairs

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer"},
        "append": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "edits": {"type": "array", "items": {"type": "object"}},
        "mode": {"enum": ["r", "w"]},
        "note": {"type": ["string", "null"]},
        "data": {"anyOf": [{"type": "object"}, {"type": "string"}]},
        "any": {},
    },
}


def parse(*pairs: str, files: dict[str, str] | None = None) -> dict[str, Any]:
    return parse_pairs(pairs, SCHEMA, (files or {}).__getitem__)


def test_values_are_read_by_the_type_that_the_schema_gives_them() -> None:
    args = parse("path=12", "lines=12", "append=true", "mode=r", "note=null", "data={}", "any=[1]", "other=1")

    assert args == {
        "path": "12",
        "lines": 12,
        "append": True,
        "mode": "r",
        "note": "null",
        "data": "{}",
        "any": [1],
        "other": "1",
    }


def test_what_does_not_fit_stays_text_for_the_schema_to_refuse() -> None:
    assert parse("lines=many", "append=maybe") == {"lines": "many", "append": "maybe"}


def test_json_can_be_forced() -> None:
    assert parse("path:=null", 'data:={"a": [1]}', "note:=3") == {"path": None, "data": {"a": [1]}, "note": 3}


def test_a_key_of_an_array_may_be_repeated() -> None:
    assert parse("tags=a", "tags=b,c") == {"tags": ["a", "b,c"]}
    assert parse('tags=["a","b"]', "tags=7") == {"tags": ["a", "b", "7"]}
    assert parse('edits={"old": "a", "new": "b"}') == {"edits": [{"old": "a", "new": "b"}]}


def test_the_text_of_a_file_can_be_an_argument() -> None:
    assert parse("path=@x", "lines=@y", files={"x": "a\nb=c\n", "y": "3"}) == {"path": "a\nb=c\n", "lines": 3}


def test_everything_after_the_first_equals_sign_is_the_value() -> None:
    assert parse("path=a=b:=c") == {"path": "a=b:=c"}


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("path", "'path' is not key=value"),
        ("=x", "'=x' is not key=value"),
        (":=1", "':=1' is not key=value"),
        ("data:={", "data: not valid JSON"),
        ("path=\udcff", "not valid UTF-8"),
    ],
)
def test_a_bad_word_is_named(pair: str, says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        parse(pair)


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(BadArgument, match="'path' is given twice"):
        parse("path=a", "path=b")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"x"', b"\xff", "{" * 10_000, '{"a":' * 10_000])
def test_arguments_that_are_not_one_json_object_are_refused(text: str | bytes) -> None:
    with pytest.raises(BadArgument):
        parse_object(text)


@given(st.text(st.characters(codec="utf-8")))
def test_text_arrives_exactly_as_typed(text: str) -> None:
    assert parse("path=" + text, files={text[1:]: text}) == {"path": text}


@given(st.lists(st.text()))
def test_whatever_is_typed_is_parsed_or_refused(pairs: list[str]) -> None:
    try:
        parse_pairs(pairs, SCHEMA, lambda name: name)
    except BadArgument:
        return
