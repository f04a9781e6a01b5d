from toolreeve.core.verdict import Decision
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.shadow import decide_shadow
from toolreeve.policy.state import PolicyState


def test_only_a_different_decision_is_a_shadow() -> None:
    state = PolicyState.of(
        rules=[
            PermissionRule(id="w", tool="write_file", decision="allow", enforce=False),
            PermissionRule(id="r", tool="read_file", decision="allow", enforce=False),
        ]
    )

    written = build_action("write_file", {"path": "/a"})
    verdict = decide(written, state)
    shadow = decide_shadow(written, verdict, state)
    assert verdict.decision is Decision.ASK
    assert shadow is not None
    assert (shadow.decision, shadow.rule) == (Decision.ALLOW, "w")
    read = build_action("read_file", {"path": "/a"})
    assert decide_shadow(read, decide(read, state), state) is None


def test_without_such_rules_there_is_no_second_policy() -> None:
    assert PolicyState.of(rules=[PermissionRule(tool="bash", decision="deny")]).shadow is None


def test_the_floor_is_always_enforced() -> None:
    rule = PermissionRule(tool="*", decision="allow", enforce=False)
    state = PolicyState.of(rules=[rule], floor=[PermissionRule(tool="bash", decision="deny", id="floor")])
    action = build_action("bash", {"command": "ls"})

    assert decide(action, state).rule == "floor"
    assert decide_shadow(action, decide(action, state), state) is None
