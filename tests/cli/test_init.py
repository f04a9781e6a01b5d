"""`toolreeve init connector`: what it writes works as it is."""

import subprocess
import sys

import pytest

from tests.cli.conftest import Shell


def test_a_new_connector_passes_its_own_test_and_is_a_tool_file(shell: Shell) -> None:
    assert shell.run("init", "connector", "tickets").status == 0

    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_tickets.py"],
        cwd=shell.workspace,
        capture_output=True,
        timeout=120,
    )
    assert b"3 passed" in tested.stdout, tested.stdout.decode()
    config = shell.home / ".config/toolreeve"
    config.mkdir(parents=True)
    (config / "toolreeve.toml").write_text(f'tool_files = ["{shell.workspace}/tickets.py"]\n')
    listed = {each["name"] for each in shell.run("tools", "--json").json}
    assert {"tickets_search", "tickets_comment"} <= listed


def test_a_connector_that_exists_is_not_changed(shell: Shell) -> None:
    (shell.workspace / "tickets.py").write_text("# mine")

    printed = shell.run("init", "connector", "tickets")

    assert "already exists" in printed.out
    assert (shell.workspace / "tickets.py").read_text() == "# mine"


@pytest.mark.parametrize("name", ["", "Tickets", "../x", "a b", "class", "1a"])
def test_a_name_that_cannot_name_a_connector_is_refused(shell: Shell, name: str) -> None:
    printed = shell.run("init", "connector", name)

    assert printed.status == 2
    assert "cannot name a connector" in printed.err
    assert list(shell.workspace.iterdir()) == []
