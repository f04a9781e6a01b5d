from tests.cli.conftest import Shell
from tests.cli.terminal import on_terminal, run_on_terminal

ERASE = "\r\x1b[K"


def test_the_last_line_of_a_running_command_is_shown_and_erased(shell: Shell) -> None:
    gate = shell.workspace / "gate"
    gate.write_text("")
    with on_terminal(shell, "call", "bash", "command=echo first; echo second; tail -f gate | head -n 1") as screen:
        screen.shows("second …")
        gate.write_text("go\n")
        screen.shows(ERASE)
        assert screen.ends() == 0


def test_a_question_about_a_trial_is_not_overwritten(shell: Shell) -> None:
    gate = shell.workspace / "gate"
    gate.write_text("")
    command = "echo working; tail -f gate | head -n 1; touch new.txt"
    with on_terminal(shell, "call", "bash", f"command={command}") as screen:
        screen.shows("working …")
        gate.write_text("go\n")
        before = screen.shows("requests approval")
        assert before.rfind(ERASE) > max(before.rfind("working …"), before.rfind("go …"))
        screen.shows("Approve?")
        screen.types("n\n")
        screen.shows("Why?")
        screen.types("\n")
        assert screen.ends() == 3
    assert not (shell.workspace / "new.txt").exists()


def test_nothing_live_goes_into_a_pipe(shell: Shell) -> None:
    printed = shell.spawn("call", "bash", "command=echo first; echo second")

    assert printed.out == "first\nsecond\n"
    assert "\x1b" not in printed.err


def test_the_result_follows_the_live_line(shell: Shell) -> None:
    shown = run_on_terminal(shell, "call", "bash", "command=echo one; echo two", columns=80)

    assert shown.replace("\r\n", "\n").endswith("one\ntwo\n")
