from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolreeve.policy.importers.claude_code import import_claude_code


def imported(decision: str, *rules: str) -> tuple[list[dict[str, Any]], list[str]]:
    found = import_claude_code({"permissions": {decision: list(rules)}}, root="/w", home="/h")
    return found.rules, [written for written, _ in found.left_out]


def test_commands_become_words_and_never_text() -> None:
    rules, left_out = imported("allow", "Bash(npm run test:*)", "Bash(git status)", "Bash(ls * foo)", "Bash", "Bash(*)")

    assert [rule["command"] for rule in rules] == ["npm run test *", "git status"]
    assert left_out == ["allow: Bash(ls * foo)", "allow: Bash", "allow: Bash(*)"]


def test_a_deny_of_a_file_holds_for_every_tool() -> None:
    rules, _ = imported("deny", "Read(./.env)", "Edit(//etc/**)", "Read(~/.ssh/**)")

    assert rules == [
        {"effect": "read", "decision": "deny", "target": {"glob": "/w/.env"}},
        {"effect": ["write", "delete"], "decision": "deny", "target": {"glob": "/etc/**"}},
        {"effect": "read", "decision": "deny", "target": {"glob": "/h/.ssh/**"}},
    ]


def test_hosts_and_tools_of_servers_are_carried_over() -> None:
    rules, left_out = imported("ask", "WebFetch(domain:example.com)", "mcp__gh__get", "mcp__gh", "Foo", "Foo(x)")

    assert rules == [
        {"tool": "fetch_url", "decision": "ask", "when": {"url": {"host": "example.com"}}},
        {"tool": "gh__get", "decision": "ask"},
        {"server": "gh", "decision": "ask"},
    ]
    assert left_out == ["ask: Foo", "ask: Foo(x)"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_settings_are_read_or_left_out(settings: Any) -> None:
    import_claude_code(settings, root="/w", home="/h")
    import_claude_code({"permissions": settings}, root="/w", home="/h")
    import_claude_code({"permissions": {"allow": settings}}, root="/w", home="/h")


@given(st.sampled_from(["Bash", "Read", "Edit", "WebFetch", "mcp__a__b"]), st.text(max_size=30))
def test_every_rule_is_carried_over_or_named(tool: str, what: str) -> None:
    rules, left_out = imported("allow", f"{tool}({what})")

    assert len(rules) + len(left_out) == 1
