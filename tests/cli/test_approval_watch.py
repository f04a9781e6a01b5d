"""Questions answered on a second terminal: line by line, and on the full screen."""

import getpass
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Shell
from tests.cli.terminal import Terminal, on_terminal
from tests.cli.test_approvals import pending, wait_for_state, write


@pytest.fixture
def screen(shell: Shell) -> Iterator[Terminal]:
    with on_terminal(shell, "approvals", "watch", "--plain") as terminal:
        terminal.shows("waiting for approval requests")
        yield terminal
        terminal.interrupt()


def test_questions_are_asked_on_the_terminal_as_they_come(shell: Shell, screen: Terminal) -> None:
    number = pending(shell)
    screen.shows("Tool 'write_file' (danger=medium) requests approval")
    screen.shows("details: ")
    screen.types("y\n")
    other = wait_for_state(shell, number, "allowed")

    answer = other["answer"]
    assert isinstance(answer, dict)
    assert answer["by"] == f"{getpass.getuser()} via terminal"
    assert write(shell).success


def test_a_question_that_is_answered_elsewhere_is_taken_back(shell: Shell, screen: Terminal) -> None:
    number = pending(shell)
    screen.shows("details: ")

    decided = subprocess.run(
        [sys.executable, "-m", "toolreeve", "approvals", "deny", "--yes", number],
        cwd=shell.workspace,
        check=True,
        timeout=60,
    )

    assert decided.returncode == 0
    screen.shows("withdrawn")
    following = pending(shell, "the next one")
    assert re.search(r"^[0-9a-f]{12}$", following)
    screen.shows("the next one")
