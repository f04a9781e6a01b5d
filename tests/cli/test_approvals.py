import asyncio
import getpass
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.approval.clients import Client
from tests.cli.conftest import Shell
from toolreeve import Toolreeve
from toolreeve.core.result import ToolResult

DEADLINE = 30.0
PATIENCE = 2.0


def write(shell: Shell, content: str = "x") -> ToolResult:
    """The call of a client that can show nothing, made by a server of its own."""

    async def run() -> ToolResult:
        async with Toolreeve(workspace=shell.workspace) as reeve:
            return await Client(capabilities={}).writes(reeve, content=content)

    return asyncio.run(run())


def pending(shell: Shell, content: str = "x") -> str:
    data = write(shell, content).data
    assert data is not None
    return str(data["approval_id"])


def test_nothing_waits_where_nothing_was_asked(shell: Shell) -> None:
    printed = shell.run("approvals")

    assert (printed.status, printed.out) == (0, "")
    assert "nothing waits" in printed.err
    assert shell.run("approvals", "--json").json == []


def test_what_waits_is_listed_and_shown_whole(shell: Shell) -> None:
    number = pending(shell, "one\ntwo \u202e three")

    listed = shell.run("approvals").out.splitlines()
    assert listed[0].split() == ["id", "state", "tool", "danger", "user", "asked", "reason"]
    assert listed[1].split()[:4] == [number, "pending", "write_file", "medium"]
    told = shell.run("approvals", "--json").json
    assert [(each["id"], each["args"]["content"]) for each in told] == [(number, "one\ntwo \u202e three")]
    shown = shell.run("approvals", "show", number[:6])
    assert "Tool 'write_file' (danger=medium) requests approval" in shown.out
    assert "two ‹U+202E› three" in shown.out
    assert "State: pending" in shown.out
    assert shell.run("approvals", "show", number, "--json").json["id"] == number


def test_an_allow_lets_the_call_run_once_and_is_on_record(shell: Shell) -> None:
    number = pending(shell)

    printed = shell.run("approvals", "allow", number)
    first, second = write(shell), write(shell)

    assert (printed.status, printed.out.strip()) == (0, f"{number}: allowed")
    assert first.success
    assert first.meta.approved_by == f"{getpass.getuser()} via command line"
    assert not second.success
    (record,) = shell.run("audit", "list", "--kind", "approval", "--json").json
    assert (record["approval"], record["granted"], record["tool"]) == (number, True, "write_file")
    assert shell.run("audit", "verify").status == 0


def test_a_deny_tells_the_model_why(shell: Shell) -> None:
    number = pending(shell)

    printed = shell.run("approvals", "deny", number, "--note", "use b.txt", "--json")
    refused = write(shell)

    assert printed.json["state"] == "denied"
    assert "use b.txt" in refused.to_text()
    assert not (shell.workspace / "a.txt").exists()


def test_the_first_decision_stands(shell: Shell) -> None:
    number = pending(shell)
    shell.run("approvals", "deny", number)

    late = shell.run("approvals", "allow", number)

    assert late.status == 1
    assert "denied (answered by" in late.err
    assert "nothing was changed" in late.err
    assert not write(shell).success


def test_always_shows_its_rule_and_writes_it_when_the_call_is_made(shell: Shell) -> None:
    number = pending(shell)

    both = shell.run("approvals", "allow", number, "--always", "--session")
    printed = shell.run("approvals", "allow", number, "--always")
    first, second = write(shell), write(shell, "again")

    assert both.status == 2
    assert "this rule will be written" in printed.err
    assert str(shell.workspace / "a.txt") in printed.err
    assert (first.success, second.success) == (True, True)
    assert second.meta.approved_by is None, "the rule allows it"
    assert "approved for always" in (shell.home / ".config" / "toolreeve" / "policy.yaml").read_text()


def test_an_unknown_id_is_not_found(shell: Shell) -> None:
    for command in ("show", "allow", "deny"):
        printed = shell.run("approvals", command, "0123456789")
        assert printed.status == 5
        assert "no question has the id '0123456789'" in printed.err


def test_watching_needs_a_terminal(shell: Shell) -> None:
    printed = shell.spawn("approvals", "watch")

    assert printed.status == 2
    assert "no terminal" in printed.err


class Terminal:
    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.text = descriptor, ""

    def shows(self, text: str) -> str:
        """Wait until the text appears, and take all up to it off the screen."""
        end = time.monotonic() + DEADLINE
        while text not in self.text:
            ready, _, _ = select.select([self.descriptor], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} was not shown, but:\n{self.text}"
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")
        before, _, self.text = self.text.partition(text)
        return before

    def types(self, text: str) -> None:
        os.write(self.descriptor, text.encode())


@contextmanager
def watching(shell: Shell) -> Iterator[Terminal]:
    """`approvals watch` as the foreground program of a terminal of its own."""
    process, descriptor = pty.fork()
    if process == 0:
        os.chdir(shell.workspace)
        os.execv(sys.executable, [sys.executable, "-m", "toolreeve", "approvals", "watch"])
    try:
        yield Terminal(descriptor)
    finally:
        interrupt(process, descriptor)
        os.close(descriptor)


def interrupt(process: int, descriptor: int) -> None:
    """Press ^C until it ends, as a person would: one that is typed just as a question comes is thrown away with all
    that was typed before it."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        os.write(descriptor, b"\x03")
        again = time.monotonic() + PATIENCE
        while time.monotonic() < again:
            if os.waitpid(process, os.WNOHANG) != (0, 0):
                return
            select.select([], [], [], 0.05)
    raise AssertionError("it did not end when it was interrupted")


@pytest.fixture
def screen(shell: Shell) -> Iterator[Terminal]:
    with watching(shell) as terminal:
        terminal.shows("questions are asked here")
        yield terminal


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
        [sys.executable, "-m", "toolreeve", "approvals", "deny", number], cwd=shell.workspace, check=True, timeout=60
    )

    assert decided.returncode == 0
    screen.shows("no longer asked")
    following = pending(shell, "the next one")
    assert re.search(r"^[0-9a-f]{10}$", following)
    screen.shows("the next one")


def wait_for_state(shell: Shell, number: str, state: str) -> dict[str, object]:
    end = time.monotonic() + DEADLINE
    while True:
        told: dict[str, object] = shell.run("approvals", "show", number, "--json").json
        if told["state"] == state:
            return told
        assert time.monotonic() < end, told
