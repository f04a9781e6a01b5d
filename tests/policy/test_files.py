import contextlib
import copy
from pathlib import Path
from textwrap import dedent
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.documents import Document, parse_yaml
from toolreeve.core.errors import ConfigErrors
from toolreeve.core.verdict import Decision
from toolreeve.policy.files import parse_rules, read_moment, read_rules
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.schema import MAX_RULES, policy_schema
from toolreeve.policy.state import PolicyState


def read(text: str, **options: Any) -> tuple[PermissionRule, ...]:
    return parse_rules(parse_yaml(dedent(text), "policy.yaml"), root="/w", **options)


def problems(text: str, **options: Any) -> list[tuple[int | None, str, str, str]]:
    with pytest.raises(ConfigErrors) as raised:
        read(text, **options)
    return [(each.line, each.key, each.problem, each.fix) for each in raised.value.problems]


GOOD = """\
version: 1
rules:
  - id: own-code
    tool: [write_file, edit_file]
    decision: allow
    effect: write
    target: {under: src}
    expires: 2030-12-31
    reason: the agent may write code
    matches:
      - {tool: write_file, args: {path: src/a.py, content: ""}}
      - {tool: Edit, args: {file_path: lib/../src/a.py}}
    not_matches:
      - {tool: write_file, args: {path: src/../a.py, content: ""}}
      - {tool: delete_file, args: {path: src/a.py}}
  - id: no-secrets
    decision: deny
    effect: [read, write, delete]
    target: {glob: "**/.env"}
    advice: Ask for the value you need.
    matches:
      - {tool: read_file, args: {path: .env}}
"""


def test_a_good_file_gives_its_rules_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)

    rules = read_rules(path, root="/w")

    assert [(rule.id, rule.place) for rule in rules] == [("own-code", f"{path}:3"), ("no-secrets", f"{path}:16")]
    state = PolicyState.of(rules=rules, root="/w", now=lambda: 0.0)
    assert decide(build_action("write_file", {"path": "src/a"}, root="/w"), state).decision is Decision.ALLOW
    assert (
        decide(build_action("write_file", {"path": "src/.env"}, root="/w"), state).advice
        == "Ask for the value you need."
    )


@pytest.mark.parametrize("text", ["", "version: 1", "rules: []", "# nothing\n"])
def test_a_file_without_rules_has_none(text: str) -> None:
    assert read(text) == ()


def test_all_problems_of_a_file_are_reported_with_line_key_and_fix() -> None:
    found = problems(
        """\
        rulez: []
        rules:
          - decision: alow
          - tool: write_file
            decision: ask
            when:
              path: {undr: src}
          - tool: fetch_url
            decision: ask
            when:
              url: {regex: "("}
              "a..b": {present: true}
          - {tool: bash, decision: deny, expires: soon}
          - {tool: bash}
        """
    )

    assert [(line, key) for line, key, _, _ in found] == [
        (1, "rulez"),
        (3, "rules[0].decision"),
        (7, "rules[1].when.path.undr"),
        (11, "rules[2].when.url.regex"),
        (12, "rules[2].when.a..b"),
        (13, "rules[3].expires"),
        (14, "rules[4].decision"),
    ]
    assert [fix for _, _, _, fix in found][:3] == ["write rules", "write allow", "write under"]
    assert all(fix for _, _, _, fix in found)


@pytest.mark.parametrize("key", ["shell", "integrity"])
def test_keys_of_a_policy_that_cannot_be_enforced_are_refused_as_unknown(key: str) -> None:
    [(line, where, problem, _)] = problems(f"rules:\n  - tool: bash\n    decision: deny\n    {key}: x\n")

    assert (line, where) == (4, f"rules[0].{key}")
    assert problem.startswith(f"unknown '{key}'")


def test_a_project_may_ask_and_deny_but_not_allow() -> None:
    text = "rules:\n  - {tool: bash, decision: allow}\n  - {tool: write_file, decision: ask}\n"

    [(line, key, problem, fix)] = problems(text, tighten_only=True)

    assert (line, key, problem) == (2, "rules[0].decision", "a project's policy may only tighten, not allow")
    assert fix == "move the rule to your own policy file, or make it ask or deny"
    assert [rule.tighten_only for rule in read("rules: [{tool: bash, decision: deny}]", tighten_only=True)] == [True]


def test_an_example_that_fails_is_named() -> None:
    found = problems(
        """\
        rules:
          - id: code
            tool: write_file
            decision: allow
            when: {path: {under: src}}
            matches:
              - {tool: write_file, args: {path: src/a}}
              - {tool: write_file, args: {path: lib/a}}
            not_matches:
              - {tool: write_file, args: {path: src/b}}
        """
    )

    assert [(line, key, problem) for line, key, problem, _ in found] == [
        (8, "rules[0].matches[1]", "the rule 'code' does not match this example: write_file {'path': 'lib/a'}"),
        (10, "rules[0].not_matches[0]", "the rule 'code' matches this example: write_file {'path': 'src/b'}"),
    ]


def test_examples_may_say_who_calls_and_in_which_mode() -> None:
    read(
        """\
        rules:
          - tool: bash
            decision: deny
            role: viewer
            mode: strict
            matches: [{tool: bash, role: viewer, mode: strict}]
            not_matches: [{tool: bash, mode: strict}, {tool: bash, role: viewer}]
        """
    )


@pytest.mark.parametrize(
    ("rule", "key", "problem"),
    [
        ("{tool: bash, decision: ask, expires: 2020-01-01}", "expires", "has expired"),
        (
            "{tool: wirte_file, decision: ask}",
            "tool",
            "never matches: there is no such tool (did you mean 'write_file'?)",
        ),
        ("{tool: bash, server: git, decision: ask}", "tool", "never matches: tools of servers are named server__tool"),
        ("{tool: read_file, effect: write, decision: deny}", "effect", "never matches: the tool changes nothing"),
        ("{tool: bash, mode: bypass, decision: ask}", "mode", "never matches: bypass mode applies no rules"),
        (
            "{tool: x__y, when: {n: {min: 2, max: 1}}, decision: ask}",
            "when.n.min",
            "can never hold: min is greater than max",
        ),
        (
            "{min_danger: high, max_danger: low, decision: ask}",
            "min_danger",
            "can never match: min_danger is above max_danger",
        ),
    ],
)
def test_a_rule_that_can_never_match_is_an_error(rule: str, key: str, problem: str) -> None:
    found = problems(f"rules:\n  - {rule}\n", now=read_moment("2026-01-01"), tools=["read_file", "write_file"])

    assert [each[:3] for each in found] == [(2, f"rules[0].{key}", problem)]


@pytest.mark.parametrize("tool", ["Read", "git__push", "mcp__git__push", "*", "custom", "run_*", "run_shell_command"])
def test_a_rule_about_any_name_of_a_tool_that_may_exist_is_fine(tool: str) -> None:
    assert len(read(f"rules: [{{tool: '{tool}', decision: ask}}]", tools=["custom"])) == 1


@pytest.mark.parametrize(
    ("first", "second", "shadowed"),
    [
        ("{tool: '*', decision: deny}", "{tool: bash, decision: allow, priority: 9}", 1),
        ("{tool: bash, decision: allow, priority: 9}", "{tool: '*', decision: deny}", 0),
        ("{tool: bash, decision: ask}", "{tool: Bash, decision: ask, when: {command: {equals: ls}}}", 1),
        ("{tool: bash, decision: ask}", "{tool: bash, decision: allow, when: {command: {equals: ls}}}", 1),
        ("{tool: 'b*', decision: allow, priority: 1}", "{tool: bash, decision: ask}", 1),
        ("{tool: bash, decision: deny}", "{tool: bash, decision: deny}", 1),
    ],
)
def test_a_rule_that_another_always_precedes_is_an_error(first: str, second: str, shadowed: int) -> None:
    [(line, key, problem, _)] = problems(f"rules:\n  - {first}\n  - {second}\n")

    assert (line, key) == (2 + shadowed, f"rules[{shadowed}]")
    assert "never decides" in problem


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{tool: bash, decision: ask}", "{tool: bash, decision: allow, when: {command: {equals: ls}}, priority: 1}"),
        ("{tool: bash, decision: deny, role: viewer}", "{tool: bash, decision: allow}"),
        ("{tool: bash, decision: deny, when: {command: {equals: ls}}}", "{tool: bash, decision: ask}"),
        ("{tool: bash, decision: allow, when: {command: {equals: ls}}, priority: 1}", "{tool: bash, decision: ask}"),
        ("{tool: bash, decision: ask, expires: 2030-01-01}", "{tool: bash, decision: allow}"),
        ("{tool: 'b*', decision: ask}", "{tool: '*', decision: ask}"),
    ],
)
def test_rules_that_each_decide_something_stand_together(first: str, second: str) -> None:
    assert len(read(f"rules:\n  - {first}\n  - {second}\n")) == 2


def test_two_rules_with_one_id_are_told_apart_by_their_author() -> None:
    [(line, key, problem, _)] = problems(
        "rules:\n  - {id: a, tool: bash, decision: ask}\n  - {id: a, tool: undo, decision: ask}\n"
    )

    assert (line, key, problem) == (3, "rules[1].id", "is also the id of the rule on line 2")


def test_a_file_with_too_many_rules_is_refused() -> None:
    rules = "".join(f"  - {{tool: t{number}, decision: ask}}\n" for number in range(MAX_RULES + 1))

    assert problems(f"rules:\n{rules}")[0][1] == "rules"


def test_a_file_that_is_no_yaml_or_missing_is_one_problem(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("rules: [")

    for path in (bad, tmp_path / "none.yaml"):
        with pytest.raises(ConfigErrors) as raised:
            read_rules(path, root="/w")
        assert len(raised.value.problems) == 1


def test_a_day_ends_at_midnight_and_a_time_without_zone_is_utc() -> None:
    assert read_moment("1970-01-01") == pytest.approx(86_400, abs=1e-3)
    assert read_moment("1970-01-01T01:00:00") == 3600
    assert read_moment("1970-01-01T01:00:00+01:00") == 0


def test_the_schema_is_a_schema_and_takes_the_good_file() -> None:
    schema = policy_schema()
    jsonschema_rs.meta.validate(schema)
    value = copy.deepcopy(parse_yaml(GOOD, "policy.yaml").value)
    value["rules"][0]["expires"] = "2030-12-31"

    assert jsonschema_rs.validator_for(schema).is_valid(value)


shapes = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["bash", "allow", "deny", "(", "", "path", "*"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["rules", "tool", "decision", "when", "target", "path", "equals", "regex", "matches", "args", "effect"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(shapes)
def test_no_document_fails_in_any_other_way_than_with_its_problems(value: Any) -> None:
    document = Document("policy.yaml", {"rules": value} if isinstance(value, list) else value)

    with contextlib.suppress(ConfigErrors):
        parse_rules(document, root="/w", tools=["bash"], now=0.0)
