import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


def write_policy(shell: Shell, text: str) -> Path:
    path = shell.home / ".config/toolreeve/policy.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_new_policy_is_tried_on_what_was_called(shell: Shell) -> None:
    (shell.workspace / "a.txt").write_text("x")
    for _ in range(3):
        shell.run("call", "read_file", "path=a.txt")
    shell.run("call", "calculate", "expression=1+1")
    new = shell.workspace / "new.yaml"
    new.write_text("rules:\n  - {id: no-reading, tool: read_file, decision: deny}\n")

    found = shell.run("policy", "simulate", str(new), "--since", "1d", "--json").json

    assert (found["total"], found["changed"]) == (4, 3)
    assert found["by"] == [{"from": "allow", "to": "deny", "n": 3}]
    assert {call["rule"] for call in found["calls"]} == {"no-reading"}
    shown = shell.run("policy", "simulate", str(new)).out
    assert "4 calls replayed; 3 decisions would change" in shown
    assert "allow → deny: 3" in shown


def test_redacted_calls_are_left_out_and_counted(shell: Shell) -> None:
    shell.run("call", "calculate", "expression=ghp_0123456789abcdefghijABCDEFGHIJ012345")
    new = shell.workspace / "new.yaml"
    new.write_text("rules: []\n")

    found = shell.run("policy", "simulate", str(new), "--json").json

    assert (found["total"], found["left_out"]) == (0, 1)


def test_an_invalid_new_policy_is_refused_with_its_line(shell: Shell) -> None:
    shell.run("call", "calculate", "expression=1")
    new = shell.workspace / "new.yaml"
    new.write_text("rules:\n  - {tool: read_file, decsion: deny}\n")

    refused = shell.run("policy", "simulate", str(new))

    assert refused.status == 2
    assert "new.yaml:2" in refused.err


def test_a_rule_that_is_not_enforced_records_what_it_would_have_decided(shell: Shell) -> None:
    write_policy(shell, "rules:\n  - {id: trial, tool: calculate, decision: deny, enforce: false}\n")

    assert shell.run("call", "calculate", "expression=1+1").status == 0

    [record] = shell.run("audit", "list", "--json").json
    assert record["decision"]["effect"] == "allow"
    assert (record["would"]["effect"], record["would"]["rule"]) == ("deny", "trial")


def test_a_whole_file_can_be_in_shadow_mode_and_a_rule_of_it_enforced(shell: Shell) -> None:
    write_policy(
        shell,
        "enforce: false\n"
        "rules:\n"
        "  - {id: trial, tool: calculate, decision: deny}\n"
        "  - {id: real, tool: get_datetime, decision: deny, enforce: true}\n",
    )

    assert shell.run("call", "calculate", "expression=1+1").status == 0
    assert shell.run("call", "get_datetime").status == 3


def test_nothing_is_suggested_before_it_was_approved_often(shell: Shell) -> None:
    shell.run("call", "calculate", "expression=1")

    assert shell.run("policy", "suggest", "--json").json == {"suggestions": []}
    assert shell.run("policy", "suggest", "--write", "1").status == 2


CLAUDE = {"permissions": {"allow": ["Bash(npm run test:*)", "Bash(ls * x)"], "deny": ["Read(./.env)"]}}


@pytest.mark.parametrize(
    ("name", "text", "rule", "left_out"),
    [
        ("settings.json", json.dumps(CLAUDE), {"tool": "bash", "decision": "allow", "command": "npm run test *"}, 1),
        (
            "default.rules",
            'prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt")\nother()\n',
            {"tool": "bash", "decision": "ask", "program": "git push"},
            1,
        ),
        (
            "mine.toml",
            "[[rule]]\ntoolName='write_file'\ndecision = 'ask_user'\n[[rule]]\nargsPattern='x'\ndecision = 'allow'\n",
            {"tool": "write_file", "decision": "ask"},
            1,
        ),
        (
            "auto_approval_policies.yaml",
            "- {id: d, applies_to: [delete_file], decision: {type: reject}}\n",
            {"tool": ["delete_file"], "decision": "deny"},
            0,
        ),
    ],
)
def test_rules_of_other_programs_are_imported_and_the_rest_is_named(
    shell: Shell, name: str, text: str, rule: dict[str, object], left_out: int
) -> None:
    path = shell.workspace / name
    path.write_text(text)

    found = shell.run("policy", "import", str(path), "--json").json

    assert rule in found["rules"]
    assert len(found["left_out"]) == left_out
    printed = shell.run("policy", "import", str(path))
    assert printed.err.count("not carried over") == left_out
    write_policy(shell, printed.out)
    assert shell.run("policy", "check").status == 0
