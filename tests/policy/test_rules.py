from typing import Any

import pytest

from toolreeve.core.action import Action
from toolreeve.core.call import Principal, Role
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.tool import bind, tool
from toolreeve.core.verdict import Decision
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import Matcher, PermissionRule, RuleProblems, protect
from toolreeve.policy.state import PolicyState

ROOT = "/w"


def matches(decision: str, action: Action, now: PermissionMode = PermissionMode.DEFAULT, /, **parts: Any) -> bool:
    matcher = Matcher(PermissionRule(decision=decision, **parts), ROOT)
    return matcher.may_concern(action, now) and matcher.matches(action, lambda: 0.0)


def call(name: str, /, *, principal: Principal | None = None, session: str = "s", **args: Any) -> Action:
    return build_action(name, args, root=ROOT, principal=principal or Principal(), session=session)


def acting(*effects: Effect, **args: Any) -> Action:
    async def work() -> str:
        return ""

    made = bind(tool(name="work", effects=lambda _, files: effects)(work))
    template = build_action("work", args, root=ROOT)
    return Action(template.call, made, args, template._files)


def test_a_rule_without_conditions_matches_every_call() -> None:
    assert matches("deny", call("anything"))


@pytest.mark.parametrize("decision", ["allow", "ask", "deny"])
def test_a_rule_matches_the_tools_it_names(decision: str) -> None:
    assert matches(decision, call("Write"), tool="write_file")
    assert matches(decision, call("write_file"), tool=["bash", "wr*"])
    assert not matches(decision, call("read_file"), tool="write_file")


def test_an_absent_argument_is_no_proof_for_an_allow_but_suspicion_for_a_deny() -> None:
    when = {"amount": {"max": 10}}

    assert not matches("allow", call("pay"), when=when)
    assert matches("ask", call("pay"), when=when)
    assert matches("deny", call("pay"), when=when)
    assert not matches("deny", call("pay"), when={"amount": {"present": True, "max": 10}})


def test_an_argument_of_another_type_is_no_proof_for_an_allow_but_suspicion_for_a_deny() -> None:
    assert not matches("allow", call("pay", amount="5"), when={"amount": {"max": 10}})
    assert matches("deny", call("pay", amount="5"), when={"amount": {"max": 10}})


def test_all_conditions_must_hold() -> None:
    when = {"a": {"equals": 1}, "b": {"equals": 2}}

    assert matches("allow", call("x", a=1, b=2), when=when)
    assert not matches("deny", call("x", a=1, b=3), when=when)


def test_rules_about_effects_reach_every_tool_that_has_them() -> None:
    secrets = {"effect": "read", "target": {"glob": "**/.env"}}

    assert matches("deny", call("read_file", path="a/.env"), **secrets)
    assert matches("deny", call("Grep", path=".env"), **secrets)
    assert not matches("deny", call("read_file", path="a.env"), **secrets)


def test_an_allow_must_cover_every_effect_of_the_call() -> None:
    inside = Effect(EffectKind.WRITE, "/w/src/a")
    outside = Effect(EffectKind.DELETE, "/w/other/b")
    rule = {"effect": "write", "target": {"under": "src"}}

    assert matches("allow", acting(inside), **rule)
    assert not matches("allow", acting(inside, outside), **rule)
    assert not matches("allow", acting(inside, Effect(EffectKind.WRITE, "/w/other")), **rule)
    assert matches("deny", acting(inside, outside), **rule)


def test_a_call_without_declared_effects_matches_no_rule_about_effects() -> None:
    assert not matches("allow", acting(), effect="write")
    assert not matches("deny", acting(), effect="write")


def test_a_link_out_of_the_allowed_place_is_not_allowed() -> None:
    through_link = acting(Effect(EffectKind.WRITE, "/w/secrets/key"), path="src/link")

    assert not matches("allow", through_link, when={"path": {"under": "src"}})


def test_the_host_of_an_effect_is_matched() -> None:
    fetch = call("fetch_url", url="https://good.com@evil.com/x")

    assert matches("deny", fetch, effect="net", target={"host": "evil.com"})
    assert not matches("allow", fetch, effect="net", target={"host": "good.com"})


def test_danger_role_user_mode_session_and_server_narrow_a_rule() -> None:
    viewer = Principal(user="ann", role=Role.VIEWER)

    assert matches("deny", call("bash"), min_danger="high")
    assert not matches("deny", call("write_file"), min_danger="high")
    assert not matches("allow", call("bash"), max_danger="medium")
    assert matches("deny", call("x", principal=viewer), role="viewer", user="a*")
    assert not matches("deny", call("x"), role=["viewer", "admin"])
    assert matches("deny", call("x"), PermissionMode.STRICT, mode="strict")
    assert not matches("deny", call("x"), mode=["strict", "plan"])
    assert matches("deny", call("x", session="nightly-1"), session="nightly-*")
    assert not matches("deny", call("x"), origin="mcp")
    assert matches("deny", call("git__push"), server="git")
    assert not matches("deny", call("bash"), server="*")


def test_all_problems_of_a_rule_are_reported_at_once() -> None:
    with pytest.raises(RuleProblems) as raised:
        Matcher(
            PermissionRule(
                id="odd",
                decision="perhaps",
                tool="",
                effect="teleport",
                role="king",
                mode="bypass",
                min_danger="high",
                max_danger="low",
                when={"a..b": {"equals": 1}, "c": {"regex": "("}},
                target={"undr": "x"},
            ),
            ROOT,
        )

    assert [problem.key for problem in raised.value.problems] == [
        ("decision",),
        ("effect",),
        ("role",),
        ("when", "a..b"),
        ("when", "c", "regex"),
        ("target", "undr"),
        ("min_danger",),
        ("mode",),
        ("tool",),
    ]
    assert "rule 'odd'" in str(raised.value)


def test_an_allow_of_a_place_covers_all_below_it_and_nothing_beside_it() -> None:
    below = acting(Effect(EffectKind.WRITE, "/w/src/a", Reach.BELOW))
    above = acting(Effect(EffectKind.WRITE, "/w", Reach.BELOW))

    assert matches("allow", below, effect="write", target={"under": ["src"]})
    assert not matches("allow", above, effect="write", target={"under": ["src"]})


def test_an_allow_by_a_pattern_does_not_cover_what_lies_below_a_path() -> None:
    below = acting(Effect(EffectKind.WRITE, "/w/src/a", Reach.BELOW))

    assert not matches("allow", below, effect="write", target={"glob": ["/w/src/a"]})
    assert not matches("allow", below, effect="write", target={"under": ["src"], "glob": ["/w/src/**"]})


def test_an_allow_of_a_place_does_not_cover_what_only_the_run_chooses_there() -> None:
    chosen = acting(Effect(EffectKind.WRITE, "/w/src/*", Reach.MATCHING))

    assert not matches("allow", chosen, effect="write", target={"under": ["src"]})
    assert matches("deny", chosen, effect="write", target={"under": ["src"]})


def test_an_allow_to_change_a_file_covers_reading_it_but_no_other() -> None:
    edit = acting(Effect(EffectKind.READ, "/w/src/a"), Effect(EffectKind.WRITE, "/w/src/a"))
    copy = acting(Effect(EffectKind.READ, "/w/.env"), Effect(EffectKind.WRITE, "/w/src/a"))

    assert matches("allow", edit, effect="write", target={"under": ["src"]})
    assert not matches("allow", copy, effect="write", target={"under": ["src"]})


def test_an_allow_that_names_reading_is_held_to_what_is_read() -> None:
    edit = acting(Effect(EffectKind.READ, "/w/src/a"), Effect(EffectKind.WRITE, "/w/src/a"))

    assert not matches("allow", edit, effect=["read"], target={"under": ["src"]})
    assert matches("allow", edit, effect=["read", "write"], target={"under": ["src"]})


def test_a_deny_of_a_host_covers_sending_to_it_but_an_allow_does_not() -> None:
    send = acting(Effect(EffectKind.SEND, "example.com"))

    assert matches("deny", send, effect="net", target={"host": "example.com"})
    assert matches("ask", send, effect="net", target={"host": "example.com"})
    assert not matches("deny", send, effect="net", target={"host": "other.example"})
    assert not matches("allow", send, effect="net", target={"host": "example.com"})


def test_a_rule_for_a_user_and_a_session_matches_only_both() -> None:
    ann = Principal(user="ann")
    rule = {"user": "ann", "session": "s1"}

    assert matches("deny", call("read_file", principal=ann, session="s1"), **rule)
    assert not matches("deny", call("read_file", principal=ann, session="s2"), **rule)
    assert not matches("deny", call("read_file", principal=Principal(user="bob"), session="s1"), **rule)


def test_a_rule_about_a_kind_of_effect_without_a_target_matches_every_target() -> None:
    delete = acting(Effect(EffectKind.DELETE, "/w/a"), Effect(EffectKind.READ, "/w/b"))

    assert matches("deny", delete, effect="delete")
    assert not matches("deny", delete, effect="write")
    assert not matches("allow", delete, effect="delete")


@pytest.mark.parametrize("named", [{"program": "git push"}, {"programs": ["git push"]}, {"command": "git push"}])
def test_an_allow_that_names_a_program_covers_no_other(named: dict[str, Any]) -> None:
    state = PolicyState.of(rules=[PermissionRule(decision="allow", tool="bash", **named)], root=ROOT)

    assert decide(call("bash", command="git push"), state).decision is Decision.ALLOW
    assert decide(call("bash", command="git gc"), state).decision is Decision.ASK


def test_a_deny_of_an_effect_meets_a_command_that_may_have_it() -> None:
    assert matches("deny", call("bash", command="unheard-of x"), effect="delete")
    assert not matches("deny", call("bash", command="unheard-of x"), effect="delete", only_certain=True)
    assert not matches("allow", call("bash", command="unheard-of x"), effect="delete")


@pytest.mark.parametrize(
    ("decision", "parts", "guards"),
    [
        ("deny", {"target": {"under": "private"}}, True),
        ("ask", {"target": {"under": "private"}, "effect": ["read", "write"]}, True),
        ("deny", {"target": {"under": "private"}, "effect": "write"}, False),
        ("allow", {"target": {"under": "private"}}, False),
        ("deny", {"target": {"host": "example.com"}}, False),
        ("deny", {"effect": "read"}, False),
    ],
)
def test_a_rule_guards_reads_if_it_asks_about_or_denies_paths(
    decision: str, parts: dict[str, Any], guards: bool
) -> None:
    assert Matcher(PermissionRule(decision=decision, **parts), ROOT).guards_reads is guards


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_several_approvals_are_for_rules_that_ask(decision: str) -> None:
    with pytest.raises(RuleProblems, match="is for ask rules only"):
        Matcher(PermissionRule(decision=decision, approvals=2), ROOT)

    assert Matcher(PermissionRule(decision="ask", approvals=2), ROOT).rule.approvals == 2


def test_the_floor_refuses_what_changes_its_paths_and_leaves_what_only_may_to_the_sandbox() -> None:
    (rule,) = protect(["/w/.state"])
    floor = Matcher(rule, ROOT)
    changes = Effect(EffectKind.WRITE, "/w/.state/db")
    may_change = Effect(EffectKind.WRITE, "/w", Reach.BELOW)

    assert floor.matches(acting(changes), lambda: 0.0)
    assert not floor.matches(acting(may_change), lambda: 0.0)


def test_a_rule_targets_the_paths_it_names_and_may_lie_below_their_parents() -> None:
    private = Matcher(PermissionRule(decision="deny", target={"under": "private"}), ROOT)
    anywhere = Matcher(PermissionRule(decision="deny", tool="bash"), ROOT)

    assert [private.targets(path) for path in ("/w/private/key", "/w/public/key")] == [True, False]
    assert [private.may_reach(place) for place in ("/w", "/w/private/deep", "/elsewhere")] == [True, True, False]
    assert not anywhere.targets("/w/private/key")


def test_only_a_rule_about_labels_uses_them() -> None:
    labelled = PermissionRule(decision="deny", labels={"unvouched": ["recipient"]})

    assert Matcher(labelled, ROOT).uses_labels
    assert not Matcher(PermissionRule(decision="deny"), ROOT).uses_labels


@pytest.mark.parametrize(
    ("parts", "key", "problem"),
    [
        ({"decision": "allow", "writes": ["build"]}, "writes", "is for rules that name a program"),
        ({"decision": "deny", "writes": ["build"]}, "writes", "is for allow rules only"),
        ({"decision": "ask", "command": "git push"}, "command", "is for allow rules only"),
        ({"decision": "deny", "confined": "look"}, "confined", "is for allow rules only"),
        ({"decision": "deny", "labels": {"vouched": "all"}}, "labels.vouched", "vouched is for allow rules only"),
        ({"decision": "deny", "tool": ""}, "tool", "names no tool"),
        ({"decision": "deny", "mode": "bypass"}, "mode", "never matches: bypass mode applies no rules"),
        (
            {"decision": "deny", "min_danger": "high", "max_danger": "low"},
            "min_danger",
            "can never match: min_danger is above max_danger",
        ),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused_once(parts: dict[str, Any], key: str, problem: str) -> None:
    with pytest.raises(RuleProblems) as refused:
        Matcher(PermissionRule(**parts), ROOT)

    assert [(".".join(map(str, each.key)), each.problem) for each in refused.value.problems] == [(key, problem)]


def test_a_program_may_be_named_with_what_it_writes() -> None:
    rule = PermissionRule(decision="allow", tool="bash", program="make", writes=["build"])

    assert Matcher(rule, ROOT).commands is not None
