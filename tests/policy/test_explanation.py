from typing import Any

import pytest
import yaml

from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.tool import bind
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision
from toolreeve.policy.explanation import explain
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import Budget, PolicyState
from toolreeve.runtime.shell_tools import with_analysis
from toolreeve.tools.shell import bash

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
        ("bash", {"denied_tools": ["Bash", "ls"]}, "remove 'Bash' from denied_tools"),
        ("bash", {"allowed_tools": ["b*"]}, "remove 'b*' from allowed_tools"),
        ("write_file", {}, "add 'write_file' to allowed_tools, or a rule: {tool: write_file, decision: allow}"),
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

    assert explain(build_action(tool, {}, cost=cost), PolicyState.of(**policy)).verdict.change == change


def test_the_named_change_really_alters_the_verdict() -> None:
    asked = build_action("write_file", {})

    assert decide(asked, PolicyState.of()).decision is Decision.ASK
    assert decide(asked, PolicyState.of(allowed_tools=["write_file"])).decision is Decision.ALLOW
    assert (
        decide(asked, PolicyState.of(rules=[PermissionRule(tool="write_file", decision="allow")])).decision
        is Decision.ALLOW
    )


def informed(command: str, **args: Any) -> Action:
    (knows,) = with_analysis([bash], root="/project", home="/home/me")
    call = ToolCall(tool="bash", args={"command": command, **args})
    return Action(call, bind(knows), call.args, None)  # type: ignore[arg-type]


def test_an_explanation_takes_a_command_apart() -> None:
    found = explain(informed("git status && rm -rf build"), PolicyState.of()).to_dict()["commands"]

    assert [(each["joined"], each["argv"]) for each in found] == [
        ("", ["git", "status"]),
        ("&&", ["rm", "-rf", "build"]),
    ]
    assert "delete" in [each["kind"] for each in found[1]["effects"]]


@pytest.mark.parametrize("mode", [PermissionMode.DEFAULT, PermissionMode.STRICT])
@pytest.mark.parametrize("command", ["git push --force", "frobnicate 'a: b' # {c}\n\"d\"", "touch x"])
def test_what_is_advised_about_a_command_allows_that_command_and_no_other(mode: PermissionMode, command: str) -> None:
    advised = explain(informed(command), PolicyState.of(mode=mode)).verdict.change
    assert advised.startswith("a rule for exactly this call: {tool: bash, when: ")
    rule = PermissionRule(**yaml.safe_load(advised.partition("call: ")[2]))
    state = PolicyState.of(mode=mode, rules=[rule])

    assert decide(informed(command), state).decision is Decision.ALLOW
    assert decide(informed(f"{command} x"), state).decision is not Decision.ALLOW
    assert decide(informed("sudo ls"), state).decision is not Decision.ALLOW


@pytest.mark.parametrize("command", ["rm -rf src", "pytest -q && rm -rf src", "touch x"])
def test_what_is_advised_about_a_trial_that_will_be_asked_about_is_no_rule_that_asks(command: str) -> None:
    state = PolicyState.of(root="/ws", confinements=(Confinement.LOOK, Confinement.TRY))
    explained = explain(build_action("bash", {"command": command}, root="/ws"), state)

    assert (explained.decision, explained.verdict.runs) == (Decision.ASK, Confinement.TRY)
    assert explained.verdict.change.endswith("decision: allow}")


def test_nothing_is_advised_about_what_cannot_be_undone() -> None:
    change = explain(informed("rm -rf /"), PolicyState.of()).verdict.change

    assert change == "nothing: its effect cannot be undone, so each call needs approval"


def test_in_strict_mode_commands_that_only_read_are_allowed_by_their_danger() -> None:
    change = explain(informed("ls"), PolicyState.of(mode=PermissionMode.STRICT)).verdict.change

    assert change == "a rule: {tool: bash, max_danger: safe, decision: allow}"


def test_an_overlong_command_is_not_repeated_in_the_advice() -> None:
    change = explain(informed("frobnicate " + "x" * 9000), PolicyState.of()).verdict.change

    assert change == (
        'a rule for exactly this call: {tool: bash, when: {"$": {equals: {…}}}, max_danger: high, decision: allow}'
    )


def test_an_explanation_lists_the_answer_of_every_layer() -> None:
    state = PolicyState.of(rules=[RULE], allowed_tools=["bash"])

    told = explain(build_action("bash", {}), state).to_dict()

    assert told == {
        "effect": "deny",
        "layer": "denied",
        "rule": "no-shell",
        "reason": "Tool 'bash' is explicitly disallowed",
        "runs": "work",
        "asks_after": "never",
        "wider": [],
        "place": "policy.yaml:7",
        "advice": "Use run_tests.",
        "change": "change or remove the rule 'no-shell' (policy.yaml:7)",
        "danger": "high",
        "grounds": "",
        "commands": [],
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
            {"layer": "mode_default", "effect": "ask", "reason": "Default mode: HIGH-danger calls need approval"},
        ],
    }


def test_the_smallest_change_names_the_file_and_wider_ones_are_marked() -> None:
    action = build_action("write_file", {"path": "docs/a", "content": "x"}, root="/ws")
    state = PolicyState.of(root="/ws")

    explained = explain(action, state)

    rule = yaml.safe_load(explained.verdict.change.partition(": ")[2])
    allowing = PolicyState.of(root="/ws", rules=[PermissionRule(**rule)])
    other = build_action("write_file", {"path": "docs/b", "content": "x"}, root="/ws")
    assert decide(action, allowing).decision is Decision.ALLOW
    assert decide(other, allowing).decision is Decision.ASK
    assert [offer.sentence for offer in explained.wider] == ["changes below docs/"]
