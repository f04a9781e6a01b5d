from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.policy.conditions import ConditionProblem, Purpose, Truth, compile_condition
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.json_path import evaluate, parse_steps, select

ARGS = {
    "path": "a",
    "headers": {"Accept": "x", "a.b": 1},
    "edits": [{"new": "n1"}, {"new": "n2"}, {"old": "o"}],
    "none": [],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("path", ["a"]),
        ("$.path", ["a"]),
        ("$", [ARGS]),
        ("headers.Accept", ["x"]),
        ('headers["a.b"]', [1]),
        ("headers['a.b']", [1]),
        ("edits[0].new", ["n1"]),
        ("edits[9].new", [None]),
        ("edits[*].new", ["n1", "n2", None]),
        ("none[*]", []),
        ("path[*]", [None]),
        ("path.deeper", [None]),
        ("missing.deeper", [None]),
    ],
)
def test_a_path_selects_the_values_of_arguments(path: str, found: list[Any]) -> None:
    assert select(ARGS, parse_steps(path)) == found


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[x]", "a]", "a[-1]"])
def test_what_is_not_a_path_is_refused(path: str) -> None:
    with pytest.raises(ConditionProblem):
        parse_steps(path)


@given(st.text(max_size=20))
def test_no_text_fails_in_any_other_way_than_being_refused(text: str) -> None:
    try:
        select(ARGS, parse_steps(text))
    except ConditionProblem:
        return


@pytest.mark.parametrize(
    ("paths", "proof", "truth"),
    [
        (["src/a", "src/b"], True, True),
        (["src/a", "etc/b"], True, False),
        (["src/a", "etc/b"], False, True),
        (["etc/b", 5], True, False),
        (["src/a", 5], True, None),
        (["etc/a", 5], False, None),
        ([], True, False),
        ([], False, False),
    ],
)
def test_an_allow_wants_every_item_a_deny_one(paths: list[Any], proof: bool, truth: Truth) -> None:
    purpose = Purpose(root="/w", proof=proof)
    test = compile_condition({"under": "src"}, purpose)

    assert evaluate(build_action("odd", {"paths": paths}, root="/w"), parse_steps("paths[*]"), test, purpose) is truth
