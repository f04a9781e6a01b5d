from toolreeve.policy.importers.gemini import import_gemini


def test_tables_become_rules_with_their_priority() -> None:
    shell = {"toolName": "run_shell_command", "commandPrefix": ["git status", "ls"], "decision": "allow", "priority": 5}
    found = import_gemini(
        {
            "rule": [
                shell,
                {"toolName": ["replace", "glob"], "decision": "ask_user"},
                {"mcpName": "gh", "decision": "deny", "denyMessage": "no"},
                {"mcpName": "gh", "toolName": "get", "decision": "allow"},
                {"toolName": "run_shell_command", "decision": "deny", "priority": 999},
            ]
        },
        root="/w",
    )

    assert found.left_out == []
    assert found.rules == [
        {"tool": "bash", "decision": "allow", "command": "git status *", "priority": 5},
        {"tool": "bash", "decision": "allow", "command": "ls *", "priority": 5},
        {"tool": "edit_file", "decision": "ask"},
        {"tool": "search_files", "decision": "ask"},
        {"server": "gh", "decision": "deny", "reason": "no"},
        {"server": "gh", "tool": "gh__get", "decision": "allow"},
        {"tool": "bash", "decision": "deny"},
    ]


def test_patterns_over_text_are_left_out() -> None:
    tables = [
        {"toolName": "run_shell_command", "commandRegex": "^ls", "decision": "allow"},
        {"argsPattern": "x", "decision": "deny"},
        {"toolName": "x", "modes": ["yolo"], "decision": "allow"},
        {"toolName": "x", "decision": "maybe"},
    ]

    found = import_gemini({"rule": tables}, root="/w")

    assert (found.rules, len(found.left_out)) == ([], 4)
