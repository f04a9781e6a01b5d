from typing import Any

import pytest

from toolreeve.core.verdict import Decision
from toolreeve.policy.explanation import explain
from toolreeve.policy.imagined import imagine
from toolreeve.policy.layers import decide
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import Budget, PolicyState

RULE = PermissionRule(
    decision="deny", id="no-shell", tool="bash", source="policy.yaml", line=7, advice="Use run_tests."
)


@pytest.mark.parametrize(
    ("tool", "policy", "change"),
    [
        ("bash", {"floor": [RULE]}, "nothing in this policy: the floor holds in every mode"),
        ("bash", {"mode": PermissionMode.BYPASS}, "leave bypass mode"),
        ("bash", {"budget": Budget(limit=1.0, spent=0.5)}, "raise the budget limit to $1.50 or more"),
        ("bash", {"mode": PermissionMode.PLAN}, "leave plan mode"),
        ("bash", {"rules": [RULE]}, "change or remove the rule 'no-shell' (policy.yaml:7)"),
        ("bash", {"denied_tools": ["Bash", "ls"]}, "take 'Bash' out of denied_tools"),
        ("bash", {"allowed_tools": ["b*"]}, "take 'b*' out of allowed_tools"),
        ("bash", {}, "add 'bash' to allowed_tools, or a rule: {tool: bash, decision: allow}"),
        (
            "Read",
            {},
            "add 'read_file' to denied_tools, or a rule that asks: {tool: read_file, decision: ask}",
        ),
    ],
)
def test_an_explanation_says_the_smallest_change_that_would_alter_it(
    tool: str, policy: dict[str, Any], change: str
) -> None:
    cost = 1.0 if "budget" in policy else 0.0

    assert explain(imagine(tool, {}, cost=cost), PolicyState.of(**policy)).verdict.change == change


def test_the_named_change_really_alters_the_verdict() -> None:
    asked = imagine("bash", {})

    assert decide(asked, PolicyState.of()).decision is Decision.ASK
    assert decide(asked, PolicyState.of(allowed_tools=["bash"])).decision is Decision.ALLOW
    assert (
        decide(asked, PolicyState.of(rules=[PermissionRule(tool="bash", decision="allow")])).decision is Decision.ALLOW
    )


def test_an_explanation_tells_what_every_layer_would_say() -> None:
    state = PolicyState.of(rules=[RULE], allowed_tools=["bash"])

    told = explain(imagine("bash", {}), state).to_dict()

    assert told == {
        "effect": "deny",
        "layer": "denied",
        "rule": "no-shell",
        "reason": "Tool 'bash' is explicitly disallowed",
        "place": "policy.yaml:7",
        "advice": "Use run_tests.",
        "change": "change or remove the rule 'no-shell' (policy.yaml:7)",
        "danger": "high",
        "grounds": "",
        "parts": [],
        "layers": [
            {"layer": "floor", "effect": None, "reason": ""},
            {"layer": "bypass", "effect": None, "reason": ""},
            {"layer": "budget", "effect": None, "reason": ""},
            {"layer": "plan", "effect": None, "reason": ""},
            {"layer": "denied", "effect": "deny", "reason": "Tool 'bash' is explicitly disallowed"},
            {"layer": "allowed", "effect": "allow", "reason": "Tool 'bash' is explicitly allowed"},
            {"layer": "ruled", "effect": None, "reason": ""},
            {"layer": "exhaustion", "effect": None, "reason": ""},
            {"layer": "mode_default", "effect": "ask", "reason": "Default mode: high tools are asked for"},
        ],
    }
