import json
from pathlib import Path

from tests.cli.conftest import Shell

SETTINGS = """{
    // mine
    "permissions": {"deny": ["Bash(rm:*)"]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo"}]} // theirs
        ],
    },
}
"""


def settings(shell: Shell) -> Path:
    path = shell.home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(SETTINGS)
    return path


def test_install_and_remove_leave_the_very_same_file(shell: Shell) -> None:
    path = settings(shell)

    assert shell.run("hooks", "install", "claude-code").status == 0
    assert "hook claude-code || exit 2" in path.read_text()
    assert shell.run("hooks", "install", "claude-code").out.startswith("Claude Code: nothing to do")
    assert shell.run("hooks", "remove", "claude-code").status == 0

    assert path.read_text() == SETTINGS


def test_later_edits_survive_the_removal(shell: Shell) -> None:
    path = settings(shell)
    shell.run("hooks", "install", "claude-code")
    path.write_text(path.read_text().replace('"permissions"', '"model": "opus",\n    "permissions"'))

    shell.run("hooks", "remove", "claude-code")

    assert "toolreeve" not in path.read_text()
    assert '"model": "opus"' in path.read_text()


def test_a_dry_run_shows_the_change_and_makes_none(shell: Shell) -> None:
    path = settings(shell)

    shown = shell.run("hooks", "install", "claude-code", "--dry-run")

    assert "+" in shown.out
    assert path.read_text() == SETTINGS


def test_status_says_for_each_client(shell: Shell) -> None:
    shell.run("hooks", "install", "codex")

    rows = {row["client"]: row for row in shell.run("hooks", "status", "--json").json["clients"]}

    assert rows["codex"]["state"] == "installed"
    assert rows["codex"]["events"] == ["PreToolUse", "PermissionRequest", "UserPromptSubmit"]
    assert rows["gemini"]["state"] == "absent"


def test_codex_users_are_told_to_trust_the_hook(shell: Shell) -> None:
    assert "/hooks" in shell.run("hooks", "install", "codex").err


def test_a_workspace_cannot_install_a_hook(shell: Shell) -> None:
    """Only the user's own file is looked at and changed."""
    (shell.workspace / ".claude").mkdir()
    theirs = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "toolreeve hook claude-code"}]}]}}
    (shell.workspace / ".claude/settings.json").write_text(json.dumps(theirs))

    rows = shell.run("hooks", "status", "claude-code", "--json").json["clients"]

    assert [row["state"] for row in rows] == ["absent"]
    shell.run("hooks", "remove", "claude-code")
    assert json.loads((shell.workspace / ".claude/settings.json").read_text()) == theirs


def test_a_name_that_resembles_a_client_is_named(shell: Shell) -> None:
    refused = shell.run("hooks", "install", "claude")

    assert (refused.status, "did you mean 'claude-code'?" in refused.err) == (2, True)
