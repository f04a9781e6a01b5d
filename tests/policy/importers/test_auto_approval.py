from toolreeve.core.verdict import Decision
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.importers.auto_approval import import_auto_approval
from toolreeve.policy.layers import decide
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import PolicyState

DOCS = {
    "id": "docs",
    "applies_to": ["write_file"],
    "include_paths": ["docs/**"],
    "exclude_paths": ["docs/secret/**"],
    "decision": {"type": "approve", "optionId": "allow"},
}


def test_a_policy_becomes_a_rule_that_paths_cannot_talk_their_way_around() -> None:
    found = import_auto_approval([DOCS], root="/w")
    state = PolicyState.of(rules=[PermissionRule(**rule) for rule in found.rules], root="/w")

    def decision(path: str) -> Decision:
        return decide(build_action("write_file", {"path": path}, root="/w"), state).decision

    assert decision("docs/a.md") is Decision.ALLOW
    for path in ("docs/../../etc/x", "docs/secret/a", "/etc/docs/a.md", "a.md"):
        assert decision(path) is not Decision.ALLOW, path


def test_what_has_no_counterpart_is_named() -> None:
    found = import_auto_approval(
        [
            {"id": "wide", "applies_to": ["edit"], "decision": {"type": "approve"}},
            {"id": "parameter", "applies_to": ["edit"], "parameters": {"x": 1}, "decision": {"type": "approve"}},
            {"id": "odd", "decision": {"type": "perhaps"}},
            DOCS | {"id": "skips", "decision": {"type": "approve", "skipGovernors": True}},
            DOCS | {"id": "newer", "when": "always"},
            {"id": "no", "applies_to": ["delete_file"], "decision": {"type": "reject", "reason": "never"}},
        ],
        root="/w",
    )

    assert [written for written, _ in found.left_out] == ["wide", "parameter", "odd", "skips", "newer"]
    assert found.rules == [{"tool": ["delete_file"], "decision": "deny", "reason": "never"}]
