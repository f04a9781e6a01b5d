"""The full screen of approvals: live list, one question, keys that must be meant."""

import getpass
import os
import time
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Shell
from tests.cli.terminal import Terminal, on_terminal
from tests.cli.test_approvals import pending, wait_for_state, write


@pytest.fixture
def screen(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("LINES", "40")
    with on_terminal(shell, "approvals", "watch") as terminal:
        terminal.shows("Nothing waits for approval")
        yield terminal
        terminal.types("q")
        assert terminal.ends() == 0


def mean(screen: Terminal, key: str) -> None:
    """Press a key twice, as someone who has read the question."""
    screen.types(key)
    screen.shows(f"press {key} again")
    time.sleep(0.35)  # what nobody can have read is refused
    screen.types(key)


def test_questions_appear_and_are_allowed_by_a_key_that_is_pressed_twice(shell: Shell, screen: Terminal) -> None:
    number = pending(shell, "one\x1b[2Jtwo")
    shown = screen.shows("requests approval") + screen.shows("+one")
    mean(screen, "y")
    screen.shows("allowed")
    answer = wait_for_state(shell, number, "allowed")["answer"]

    assert isinstance(answer, dict)
    assert answer["by"] == f"{getpass.getuser()} via terminal"
    assert ("1 question waiting" in shown, "\x1b[2Jtwo" in shown) == (True, False)
    assert write(shell, "one\x1b[2Jtwo").success


def test_another_question_is_selected_and_denied_and_the_first_stays(shell: Shell, screen: Terminal) -> None:
    first = pending(shell, "first")
    second = pending(shell, "second")
    screen.shows("2 questions waiting")
    screen.types("j")
    screen.shows("+second")
    mean(screen, "n")
    wait_for_state(shell, second, "denied")

    assert shell.run("approvals", "show", first, "--json").json["state"] == "pending"


def test_other_keys_and_a_yes_for_another_question_decide_nothing(shell: Shell, screen: Terminal) -> None:
    numbers = [pending(shell, text) for text in ("first", "second")]
    screen.shows("2 questions waiting")
    screen.types("y")
    screen.shows("press y again")
    screen.types("jy")
    screen.shows("press y again")
    screen.types("nasex")
    screen.shows("press n again")

    assert {shell.run("approvals", "show", each, "--json").json["state"] for each in numbers} == {"pending"}


def test_enter_asks_in_the_dialogue_where_edits_are_judged_and_comes_back(shell: Shell, screen: Terminal) -> None:
    number = pending(shell)
    screen.shows("1 question waiting")
    os.environ.pop("EDITOR", None)
    screen.types("\n")
    screen.shows("details: ")
    screen.types("e\n")
    screen.shows("(or set EDITOR): ")
    screen.types('{"path": "b.txt"}\n')
    screen.shows("[y/n]: ")
    screen.types("y\n")
    wait_for_state(shell, number, "edited")
    screen.shows("Nothing waits for approval")

    assert write(shell).success
    assert (shell.workspace / "b.txt").exists()


def test_a_question_is_not_allowed_before_its_end_was_in_sight(shell: Shell, screen: Terminal) -> None:
    number = pending(shell, "\n".join(f"line {each}" for each in range(30)) + "\n" + "x" * 300 + " the end")
    screen.shows("more lines: Space")
    screen.types("y")
    screen.shows("there is more of this question")
    screen.types("y" + " " * 20)
    screen.shows("Caller: ")
    mean(screen, "y")

    assert wait_for_state(shell, number, "allowed")
