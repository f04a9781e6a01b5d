"""What a command left for the host to obey, and the person who decides about it."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Shell
from tests.cli.terminal import on_terminal


@pytest.fixture
def held(shell: Shell) -> str:
    """The id of a planted `.vscode/tasks.json`."""
    made = shell.spawn(
        "--mode", "bypass", "call", "bash", "command=mkdir .vscode; echo evil > .vscode/tasks.json; echo done"
    )

    assert made.status == 0, made.err
    assert not (shell.workspace / ".vscode").exists()
    assert made.out == "done\n"
    assert made.err.startswith("toolreeve: quarantined .vscode: VS Code obeys it (toolreeve quarantine release ")
    return made.err.rpartition("release ")[2].split(")")[0]


def test_a_quarantined_file_is_in_the_result_listed_and_shown(shell: Shell, held: str) -> None:
    [listed] = json.loads(shell.spawn("quarantine", "list", "--json").out)
    assert (listed["id"], listed["path"]) == (held, str(shell.workspace / ".vscode"))
    shown = shell.spawn("quarantine", "show", held)
    assert "VS Code obeys it" in shown.out
    assert "tasks.json" in shown.out
    assert shell.spawn("quarantine", "show", "nothing").status == 5


@pytest.mark.parametrize(("typed", "status"), [("y", 0), ("n", 3), ("", 3)])
def test_a_person_releases_it_on_a_terminal(shell: Shell, held: str, typed: str, status: int) -> None:
    with on_terminal(shell, "quarantine", "release", held) as terminal:
        shown = terminal.shows("Restore it, for the host to obey? [y/n]: ")
        terminal.types(f"{typed}\n")

        assert terminal.ends() == status
    assert "VS Code obeys it" in shown
    assert (shell.workspace / ".vscode/tasks.json").exists() is (status == 0)


def test_without_a_terminal_nothing_is_released(shell: Shell, held: str) -> None:
    refused = shell.spawn("quarantine", "release", held, stdin=b"y\ny\n")

    assert refused.status == 2
    assert "--yes" not in refused.err
    assert not (shell.workspace / ".vscode").exists()


def test_what_stands_there_now_is_kept(shell: Shell, held: str) -> None:
    (shell.workspace / ".vscode").mkdir()

    refused = shell.spawn("quarantine", "release", held, "--yes")

    assert refused.status == 1
    assert "the path exists again" in refused.err
    assert list((shell.workspace / ".vscode").iterdir()) == []


def test_a_decision_is_on_record(shell: Shell, held: str) -> None:
    assert shell.spawn("quarantine", "delete", held, "--yes").status == 0

    assert shell.spawn("quarantine").err.strip().endswith("nothing is quarantined")
    exported = shell.spawn("audit", "export").out
    assert held in exported
    assert '"deleted"' in exported


def test_a_command_cannot_release(shell: Shell, held: str) -> None:
    explained = shell.spawn("explain", "command", f"toolreeve quarantine release {held} --yes")

    assert "decides in a person's place" in explained.out
    command = f"ls {shell.home}/.local/state/toolreeve/quarantine || echo nothing there"
    assert "nothing there" in shell.spawn("--mode", "bypass", "call", "bash", f"command={command}").out


def test_what_a_killed_runtime_quarantined_is_reported_by_the_next(shell: Shell) -> None:
    os.mkfifo(shell.workspace / "begun")
    os.mkfifo(shell.workspace / "go")
    command = "exec 3> begun; mkdir .vscode; echo evil > .vscode/tasks.json; echo >&3; read < go"
    killed = subprocess.Popen(
        [sys.executable, "-m", "toolreeve", "--mode", "bypass", "call", "bash", f"command={command}"],
        cwd=shell.workspace,
        stdin=subprocess.DEVNULL,
    )
    with (shell.workspace / "begun").open() as begun:
        assert begun.readline() == "\n"
        killed.kill()
        killed.wait()
        assert begun.read() == ""

    after = shell.spawn("--mode", "bypass", "call", "bash", "command=echo done")

    assert after.out == "done\n"
    assert "a runtime was killed while a command ran: quarantined .vscode: VS Code obeys it" in after.err
    [listed] = json.loads(shell.spawn("quarantine", "list", "--json").out)
    assert listed["path"] == str(shell.workspace / ".vscode")
    assert listed["id"] in after.err


def test_what_was_taken_is_on_record_with_its_call(shell: Shell, held: str) -> None:
    (taken,) = shell.spawn("--json", "audit", "list").json

    assert held in json.dumps(taken)


def test_a_quarantined_file_that_git_may_track_is_reported_as_such(shell: Shell) -> None:
    subprocess.run(["git", "init", "-q"], cwd=shell.workspace, check=True)

    made = shell.spawn("--mode", "bypass", "call", "bash", "command=mkdir .github; echo 1 > .github/x; echo done")

    told = "quarantined .github: CI obeys it; if git tracks it, git shows it as deleted until you release it"
    assert told in made.err


def test_settings_of_git_that_are_named_may_be_changed_by_commands(shell: Shell) -> None:
    subprocess.run(["git", "init", "-q"], cwd=shell.workspace, check=True)
    change = ("--mode", "bypass", "call", "bash", "command=git config user.name Ada && git config user.name")

    refused = shell.spawn(*change)
    changed = shell.spawn(*change, env={"TOOLREEVE_WORKSPACE_SENSITIVE_ALLOW": ".git/config"})

    assert refused.status != 0
    assert (changed.status, changed.out) == (0, "Ada\n")
