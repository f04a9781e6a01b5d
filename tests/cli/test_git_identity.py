"""Commits of commands carry the identity of the user, and nothing else of the user's settings."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.mark.parametrize("place", [".gitconfig", ".config/git/config"])
def test_a_command_commits_as_the_user(shell: Shell, place: str) -> None:
    settings = Path(shell.home, place)
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('[user]\n\tname = Ada "L" Ünal\n\temail = ada@example.org\n[core]\n\tpager = touch pwned\n')
    subprocess.run(["git", "init", "-q"], cwd=shell.workspace, check=True)

    script = "echo x > f; git add f; git commit -qm 1; git log --format='%an <%ae>'; git config core.pager"
    ran = shell.spawn("--mode", "bypass", "call", "bash", f"command={script}")

    assert ran.out.splitlines() == ["Ada L Ünal <ada@example.org>", "cat"]


def test_settings_that_cannot_be_read_are_left_out(shell: Shell) -> None:
    Path(shell.home, ".gitconfig").write_text("[user\nname")

    assert shell.spawn("--mode", "bypass", "call", "bash", "command=echo fine").out == "fine\n"
