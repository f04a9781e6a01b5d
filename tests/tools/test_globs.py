import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.file_tools import refusal
from toolreeve.core.errors import ErrorCode
from toolreeve.tools.globs import compile_glob, wants_hidden


@given(pattern=st.text("ab*?.", min_size=1, max_size=8), name=st.text("ab.", min_size=1, max_size=8))
def test_within_a_name_globs_mean_what_they_mean_everywhere(pattern: str, name: str) -> None:
    if "**" in pattern:
        return
    assert compile_glob(pattern)(name) == fnmatch.fnmatchcase(name, pattern)


@given(pattern=st.text(max_size=30), path=st.text(max_size=20))
def test_any_pattern_is_usable_or_refused(pattern: str, path: str) -> None:
    assert refusal(lambda: compile_glob(pattern)(path)) in (None, ErrorCode.INVALID_PARAMS)


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "py"]),
        ("a/*.py", ["a/b.py"], ["a/b/c.py", "x/a/b.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["ax"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a"]),
        ("{a,b}.c", ["a.c", "b.c"], ["c.c"]),
        ("[a-c].x", ["b.x"], ["d.x"]),
        ("[!a].x", ["b.x"], ["a.x"]),
        ("[", ["["], ["x"]),
        ("a{b", ["a{b"], ["ab"]),
        ("a+b", ["a+b"], ["aab"]),
    ],
)
def test_patterns(pattern: str, fits: list[str], fails: list[str]) -> None:
    matches = compile_glob(pattern)

    assert [path for path in [*fits, *fails] if matches(path)] == fits


def test_hidden_names_are_wanted_only_if_the_pattern_says_so() -> None:
    assert wants_hidden(".github/*.yml")
    assert not wants_hidden("./src/*.py")
