from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.action import Action
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.tool import bind, tool
from toolreeve.policy.conditions import (
    ConditionProblem,
    Purpose,
    Truth,
    absolute,
    compile_condition,
    compile_regex,
    glob_to_regex,
    host_of,
    json_equal,
)
from toolreeve.policy.hypothetical import build_action

ROOT = "/w"
NOTHING = build_action("odd", {})


def judged(condition: Mapping[str, Any], value: Any, *, proof: bool, action: Action = NOTHING) -> Truth:
    return compile_condition(condition, Purpose(root=ROOT, proof=proof))(value, action)


def touching(*paths: str) -> Action:
    """A call whose effects lead to these paths, whatever its arguments say."""

    async def work() -> str:
        return ""

    effects = [Effect(EffectKind.WRITE, path) for path in paths]
    made = bind(tool(name="work", effects=lambda args, files: effects)(work))
    return Action(NOTHING.call, made, {}, NOTHING._files)


@pytest.mark.parametrize("proof", [True, False])
@pytest.mark.parametrize(
    ("condition", "value", "truth"),
    [
        ({"equals": 1}, 1, True),
        ({"equals": 1}, 1.0, True),
        ({"equals": 1}, True, False),
        ({"equals": [1]}, [True], False),
        ({"equals": {"a": [1, None]}}, {"a": [1, None]}, True),
        ({"equals": None}, None, True),
        ({"equals": "a"}, None, None),
        ({"one_of": ["a", "b"]}, "b", True),
        ({"one_of": ["a", "b"]}, "c", False),
        ({"min": 1, "max": 3}, 2, True),
        ({"min": 1, "max": 3}, 4, False),
        ({"min": 1}, "5", None),
        ({"min": 1}, True, None),
        ({"max": 1}, float("nan"), None),
        ({"host": "example.com"}, "https://EXAMPLE.com.:8443/x", True),
        ({"host": "*.example.com"}, "https://a.b.example.com", True),
        ({"host": "*"}, "https://a.b.example.com", True),
        ({"host": "*"}, "10.0.0.1", True),
        ({"host": "*"}, "http://a b/", None),
        ({"host": "bücher.example"}, "https://xn--bcher-kva.example/", True),
        ({"host": "[::1]"}, "http://[::1]:80/", True),
        ({"host": "*.example.com"}, "https://example.com", False),
        ({"host": "*.example.com"}, "https://evilexample.com", False),
        ({"present": True}, None, False),
        ({"present": True}, "", True),
        ({"present": False}, None, True),
        ({"present": False}, "x", False),
        ({"present": True, "equals": "a"}, None, False),
        ({"not": {"equals": "a"}}, "b", True),
        ({"not": {"equals": "a"}}, None, None),
        ({"under": "src"}, "src/a", True),
        ({"under": "src"}, "src", True),
        ({"under": "src"}, "srcs/a", False),
        ({"under": "/w/src"}, "src/./b//c", True),
        ({"under": "/"}, "anything", True),
        ({"under": ["a", "b"]}, "b/c", True),
        ({"under": "src"}, "src/../a", None),
        ({"under": "src"}, "~/src", None),
        ({"under": "src"}, "src/\0", None),
        ({"under": "src"}, 5, None),
        ({"glob": "*.py"}, "a.py", True),
        ({"glob": "*.py"}, "b/a.py", False),
        ({"glob": "**/*.py"}, "a.py", True),
        ({"glob": "**/*.py"}, "b/c/a.py", True),
        ({"glob": "src/**"}, "src/a/b", True),
        ({"glob": "/etc/*"}, "/etc/passwd", True),
        ({"glob": "[!a]?c"}, "bbc", True),
        ({"glob": "[!a]?c"}, "abc", False),
        ({"glob": "a.c"}, "abc", False),
    ],
)
def test_a_condition_is_true_false_or_undecidable(
    condition: dict[str, Any], value: Any, truth: Truth, proof: bool
) -> None:
    assert judged(condition, value, proof=proof) is truth


def test_an_allow_must_match_the_whole_value_a_deny_any_part_of_it() -> None:
    assert judged({"regex": "rm -rf"}, "sudo rm -rf /", proof=True) is False
    assert judged({"regex": "rm -rf"}, "sudo rm -rf /", proof=False) is True


def test_a_line_break_hides_nothing_from_a_deny_and_widens_no_allow() -> None:
    assert judged({"regex": "rm.*-rf"}, "rm\n-rf", proof=False) is True
    assert judged({"regex": "git .*"}, "git log\nrm -rf /", proof=True) is False


def test_the_opposite_of_a_search_must_be_proven_over_the_whole_value() -> None:
    assert judged({"not": {"regex": "secret"}}, "my secret file", proof=True) is False


def test_a_regular_expression_takes_linear_time_on_hostile_input() -> None:
    assert judged({"regex": "(a+)+$"}, "a" * 50_000 + "b", proof=True) is False


def test_text_that_is_not_unicode_is_undecidable() -> None:
    assert judged({"regex": "a"}, "\udcff", proof=True) is None
    assert judged({"glob": "*"}, "\udcff", proof=True) is None


def test_a_path_through_a_link_is_judged_by_where_it_leads() -> None:
    through_link = touching("/w/secrets/key")

    assert judged({"under": "src"}, "src/link", proof=True, action=through_link) is False
    assert judged({"under": "secrets"}, "src/link", proof=False, action=through_link) is True


def test_a_path_without_links_is_matched_only_as_it_is_written() -> None:
    moving = touching("/w/src/a", "/w/other/b")

    assert judged({"under": "src"}, "src/a", proof=True, action=moving) is True


def test_steps_up_are_judged_where_the_effects_prove_them() -> None:
    assert judged({"under": "src"}, "lib/../src/a", proof=True, action=touching("/w/src/a")) is True
    assert judged({"under": "src"}, "src/link/../a", proof=True, action=touching("/elsewhere/a")) is False


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("https://good.com@evil.com/", "evil.com"),
        ("https://evil.com\\@good.com/", None),
        ("https://evil.com%2f@good.com/", None),
        ("https://good.com\t.evil.com", None),
        ("https://good.com\n", None),
        ("https://evil.com#@good.com", "evil.com"),
        ("https://evil.com?@good.com", "evil.com"),
        ("evil.com:80/good.com", "evil.com"),
        ("https://bücher.example", "xn--bcher-kva.example"),
        ("https://[::1]:80/", "::1"),
        ("https://[::1", None),
        ("https://a..b", None),
        ("https://", None),
        ("", None),
        (5, None),
    ],
)
def test_a_host_is_read_only_where_all_parsers_agree(value: Any, host: str | None) -> None:
    assert host_of(value) == host


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ({}, "has no condition"),
        ("src", "expected conditions"),
        ({"undr": "src"}, r"unknown condition 'undr' \(did you mean 'under'"),
        ({"regex": "("}, "bad regular expression"),
        ({"regex": "(?=a)"}, "bad regular expression"),
        ({"regex": ""}, "expected a regular expression"),
        ({"one_of": []}, "at least one value"),
        ({"min": "a"}, "expected a number"),
        ({"min": 3, "max": 1}, "can never hold"),
        ({"equals": 1, "one_of": [2]}, "can never hold"),
        ({"present": False, "equals": 1}, "can never hold"),
        ({"present": "yes"}, "expected true or false"),
        ({"glob": "[z-a]"}, "bad regular expression"),
        ({"under": []}, "expected a string"),
        ({"not": {"undr": 1}}, "unknown condition"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(condition: Any, problem: str) -> None:
    with pytest.raises(ConditionProblem, match=problem):
        compile_condition(condition, Purpose(root=ROOT, proof=True))


def test_an_invalid_regular_expression_is_reported_without_a_log_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConditionProblem):
        compile_condition({"regex": "("}, Purpose(root=ROOT, proof=True))

    assert capfd.readouterr() == ("", "")


def test_marks_in_the_name_of_the_workspace_are_taken_literally() -> None:
    inside = compile_condition({"glob": "*.py"}, Purpose(root="/w[1]*", proof=True))

    assert inside("a.py", NOTHING) is True
    assert inside("/w1x/a.py", NOTHING) is False


names = st.text(
    st.characters(blacklist_characters="/\0*?[]\\", blacklist_categories=["Cs"]), min_size=1, max_size=8
).filter(lambda name: name not in (".", "..") and not name.startswith("~"))


@given(st.lists(names, min_size=1, max_size=4))
def test_a_glob_without_marks_matches_exactly_its_own_path(parts: list[str]) -> None:
    path = "/".join(parts)

    pattern = compile_regex(glob_to_regex(path, ROOT))

    assert pattern.fullmatch(absolute(path, ROOT)) is not None
    assert pattern.fullmatch(absolute(f"{path}x", ROOT)) is None


@given(st.lists(names, min_size=1, max_size=3), names)
def test_a_star_matches_one_name_and_two_stars_any_number(parts: list[str], last: str) -> None:
    deep = "/".join([*parts, last])

    assert judged({"glob": "**"}, deep, proof=True) is True
    assert judged({"glob": "/".join("*" * (len(parts) + 1))}, deep, proof=True) is True
    assert judged({"glob": "*"}, deep, proof=True) is False


@given(st.text(max_size=40))
def test_any_text_at_all_is_judged_without_failing(text: str) -> None:
    for condition in ({"under": "src"}, {"glob": "**/*.py"}, {"regex": "a+"}, {"host": "a.b"}):
        assert judged(condition, text, proof=True) in (True, False, None)


@given(st.text(max_size=30))
def test_no_glob_fails_in_any_other_way_than_being_refused(pattern: str) -> None:
    try:
        judged({"glob": pattern}, "src/a.py", proof=True)
    except ConditionProblem:
        return


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_equality_is_reflexive_and_symmetric_and_true_is_not_one(one: Any, other: Any) -> None:
    assert json_equal(one, one)
    assert json_equal(one, other) is json_equal(other, one)
    assert not json_equal([True], [1])


def test_the_target_of_an_effect_is_taken_as_it_is(tmp_path: Path) -> None:
    resolved = Purpose(root=str(tmp_path), proof=True, resolved=True)

    assert compile_condition({"under": "src"}, resolved)(f"{tmp_path}/src/a", touching("/elsewhere")) is True


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://example.com", "example.com"),
        ("example.com:443", "example.com"),
        ("example.com/x", "example.com"),
        ("*example.com", ""),
        ("10.0.0.*", ""),
        ("*.", ""),
    ],
)
def test_a_host_that_no_host_could_ever_be_is_refused(written: str, meant: str) -> None:
    with pytest.raises(ConditionProblem, match="not a host") as refused:
        compile_condition({"host": written}, Purpose(root="/", proof=False))

    assert meant in refused.value.problem
    assert refused.value.key == ("host",)
