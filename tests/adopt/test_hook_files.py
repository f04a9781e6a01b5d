import json
from pathlib import Path

import pytest

from toolreeve.adopt.hook_files import HOOKED, find_installed, hook_command, plan_install, plan_removal
from toolreeve.core.errors import ConfigError

PROGRAM = ["/opt/my tools/toolreeve"]
WITH_COMMENTS = """{
  // mine
  "model": "x",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo"}]} // keep
    ]
  }
}
"""


@pytest.mark.parametrize("client", HOOKED)
@pytest.mark.parametrize("before", [None, "", "{}\n", '{"model": "x"}', WITH_COMMENTS])
def test_what_is_installed_can_be_removed_and_nothing_else_changes(
    tmp_path: Path, client: str, before: str | None
) -> None:
    chosen = HOOKED[client]
    path = tmp_path / chosen.file
    path.parent.mkdir()
    if before is not None:
        path.write_text(before)

    change = plan_install(chosen, tmp_path, PROGRAM)
    assert change is not None
    path.write_text(change.after)

    assert find_installed(chosen, tmp_path) == tuple(chosen.events)
    assert plan_install(chosen, tmp_path, PROGRAM) is None
    assert ("// mine" in change.after and "// keep" in change.after) == (before == WITH_COMMENTS)
    removal = plan_removal(chosen, tmp_path)
    assert removal is not None
    path.write_text(removal.after)
    assert find_installed(chosen, tmp_path) == ()
    assert plan_removal(chosen, tmp_path) is None
    kept = {} if not before else {"model": "x"} if "model" in before else {}
    assert removal.after.count('"model"') == len(kept)
    assert removal.after.count('"echo"') == (before == WITH_COMMENTS)


def test_a_hook_of_another_installation_is_replaced(tmp_path: Path) -> None:
    chosen = HOOKED["gemini"]
    path = tmp_path / chosen.file
    path.parent.mkdir()
    first = plan_install(chosen, tmp_path, ["/old/toolreeve"])
    assert first is not None
    path.write_text(first.after)

    second = plan_install(chosen, tmp_path, PROGRAM)

    assert second is not None
    assert "/old/" not in second.after
    hooks = json.loads(second.after)["hooks"]["BeforeTool"]
    command = hook_command("gemini", PROGRAM)
    assert hooks == [{"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 30000}]}]


def test_a_command_that_cannot_start_refuses() -> None:
    import subprocess

    command = hook_command("codex", ["/nowhere/toolreeve"])

    assert subprocess.run(["sh", "-c", command], capture_output=True, timeout=10).returncode == 2


@pytest.mark.parametrize("text", ["[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "{", '{"a": 1, "a": 2}'])
def test_a_file_that_is_not_as_expected_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / HOOKED["claude-code"].file
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(ConfigError):
        plan_install(HOOKED["claude-code"], tmp_path, PROGRAM)
