"""Values quoted by a filter reach the real program unchanged."""

import json
import sqlite3
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scripted.scripts import run
from toolreeve.core.errors import ToolError
from toolreeve.scripted.filters import FILTERS
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import compile_script

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NASTY = st.text(st.sampled_from("'\"\\;-$`%_()[]{}|*?.^+/#\n aé:@,=<>&!~0E"), max_size=12)
LINE = (TEXT | NASTY).filter(lambda text: not set(text) & set("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))


@given(TEXT | NASTY)
def test_an_sql_literal_is_one_string_for_sqlite(text: str) -> None:
    literal = FILTERS["sql"](text, "sqlite")

    assert sqlite3.connect(":memory:").execute(f"select {literal}, 1").fetchone() == (text, 1)


@given(NASTY)
@settings(max_examples=60, deadline=None)
def test_sqlite3_prints_the_value_of_a_literal_and_nothing_else(text: str) -> None:
    printed = run("sqlite3 -safe :memory: \"select hex({{x|sql('sqlite')}});\"", {"x": text})

    assert bytes.fromhex(printed.strip()).decode() == text


@given(NASTY)
@settings(max_examples=60, deadline=None)
def test_a_literal_in_a_heredoc_is_one_string_for_sqlite3(text: str) -> None:
    printed = run("sqlite3 :memory: <<EOF\nselect hex(\n{{x|sql('sqlite')}}\n);\nEOF\n", {"x": text})

    assert bytes.fromhex(printed.strip()).decode() == text


@given(NASTY)
@settings(max_examples=60, deadline=None)
def test_a_json_literal_is_one_string_for_jq(text: str) -> None:
    assert json.loads(run("jq -n '[{{x|json}}, 1]'", {"x": text})) == [text, 1]


@pytest.mark.parametrize("kind", ["-G", "-E", "-P"])
def test_a_regex_literal_matches_just_this_text(kind: str) -> None:
    @given(LINE.filter(bool))
    @settings(max_examples=40, deadline=None)
    def matches(text: str) -> None:
        pattern = FILTERS["regex"](text)
        found = subprocess.run(
            ["grep", "-a", "-x", kind, "-e", pattern],
            input=f"{text}\n{text}x\nx{text}\n",
            capture_output=True,
            text=True,
            env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        )
        assert (found.stdout, found.stderr) == (f"{text}\n", "")

    matches()


def test_an_sql_literal_without_a_dialect_takes_no_backslash() -> None:
    script = compile_script('sqlite3 db "select {{x|sql}}"', {})

    assert script.render({"x": "O'Hara"}).values == ["'O''Hara'"]
    with pytest.raises(ToolError, match="backslash"):
        script.render({"x": "a\\"})


@pytest.mark.parametrize(
    ("dialect", "literal"), [("sqlite", r"'a\''b'"), ("postgres", r"E'a\\''b'"), ("mysql", r"'a\\''b'")]
)
def test_each_dialect_has_its_own_backslash(dialect: str, literal: str) -> None:
    assert FILTERS["sql"]("a\\'b", dialect) == literal


@pytest.mark.parametrize("value", [1, -2.5, True])
def test_numbers_are_literals_of_sql_as_they_are(value: object) -> None:
    assert run('sqlite3 :memory: "select {{x|sql}} + 1"', {"x": value}) == f"{value + 1}\n"  # type: ignore[operator]


@pytest.mark.parametrize(
    "place",
    [
        "'{{x|sql}}'",
        "'a'{{x|sql}}",
        "{{x|sql}}'a'",
        "E{{x|sql}}",
        "-{{x|sql}}",
        "/* {{x|sql}} */",
        "1 -- {{x|sql}}",
        '"{{x|sql}}"',
        "{{x|sql}}{{y|sql}}",
        "{{x|sql|upper}}",
        "{{x|json}}",
        "{{x|sql('postgres')}}",
        "[{{x|sql}}]",
    ],
)
def test_an_sql_literal_is_accepted_only_as_one(place: str) -> None:
    with pytest.raises(TemplateProblem):
        compile_script(f"sqlite3 db <<EOF\nselect {place};\nEOF\n", {})


def test_a_count_is_a_number_whatever_is_counted() -> None:
    assert run("n={{x|length}}; echo $((n + 1))", {"x": "abc"}) == "4\n"
    assert run("n={{x|int}}; echo $((n + 1))", {"x": "41"}) == "42\n"
