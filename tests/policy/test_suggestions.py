from dataclasses import replace
from typing import Any

from toolreeve.core.call import LOCAL
from toolreeve.core.verdict import Decision
from toolreeve.policy.layers import decide
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.simulation import PastCall, Simulator
from toolreeve.policy.state import PolicyState
from toolreeve.policy.suggestions import Suggestion, suggest_rules

STATE = PolicyState.of(root="/work")


def approved(tool: str, times: int, **args: Any) -> list[PastCall]:
    call = PastCall(
        id="c", tool=tool, args=args, principal=LOCAL, session="s", origin="mcp", recorded="ask", approved_by="local"
    )
    return [call] * times


def suggest(calls: list[PastCall], state: PolicyState = STATE) -> list[Suggestion]:
    return suggest_rules(calls, state, Simulator(state, state, root="/work"))


def test_the_narrowest_rule_for_a_command_is_the_command() -> None:
    [found] = suggest([*approved("bash", 14, command="npm test"), *approved("bash", 2, command="make")])

    assert found.sentence == "approved `npm test` 14 times here"
    assert found.rule == {"tool": "bash", "decision": "allow", "max_danger": "high", "command": "npm test"}


def test_a_suggested_rule_allows_the_call_and_no_other() -> None:
    calls = [
        *approved("bash", 3, command="npm test"),
        *approved("write_file", 4, path="docs/a.md", content="x"),
        *approved("github__create_issue", 5, title="t"),
    ]
    other = {"command": "npm test; rm -rf x", "path": "docs/b.md", "title": "u"}

    suggested = suggest(calls)

    assert len(suggested) == 3
    for found in suggested:
        state = PolicyState.of(root="/work", rules=[PermissionRule(**found.rule)])
        simulator = Simulator(state, state, root="/work")
        call = next(each for each in calls if each.tool == found.rule["tool"])
        changed = replace(call, args={key: other.get(key, value) for key, value in call.args.items()})
        assert decide(simulator.action(call), state).decision is Decision.ALLOW
        assert decide(simulator.action(changed), state).decision is Decision.ASK


def test_nothing_is_suggested_for_what_cannot_be_undone_or_is_allowed_already() -> None:
    allowed = PolicyState.of(root="/work", rules=[PermissionRule(tool="bash", command="npm test", decision="allow")])

    assert suggest(approved("bash", 9, command="rm -rf /")) == []
    assert suggest(approved("bash", 9, command="npm test"), allowed) == []


def test_only_what_a_person_approved_counts() -> None:
    [call] = approved("bash", 1, command="npm test")

    assert suggest([replace(call, approved_by=None)] * 9) == []
    assert suggest([replace(call, recorded="allow")] * 9) == []
