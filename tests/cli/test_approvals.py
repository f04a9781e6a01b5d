import asyncio
import getpass
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

import toolreeve
from tests.approval.clients import Client
from tests.cli.conftest import Shell
from tests.cli.terminal import DEADLINE, on_terminal
from toolreeve import Toolreeve
from toolreeve.core.call import ToolCall
from toolreeve.core.result import ToolResult

SOURCE = Path(toolreeve.__file__).parents[1]


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


def test_nothing_is_pending_if_nothing_was_asked(shell: Shell) -> None:
    printed = shell.run("approvals")

    assert (printed.status, printed.out) == (0, "")
    assert "no pending approvals" in printed.err
    assert shell.run("approvals", "--json").json == []


def test_what_waits_is_listed_and_shown_whole(shell: Shell) -> None:
    number = pending(shell, "one\ntwo \u202e three")

    listed = shell.run("approvals").out.splitlines()
    assert listed[0].split() == ["id", "state", "danger", "asked", "question"]
    assert listed[1].split()[:3] == [number, "pending", "medium"]
    assert f"wants to create `a.txt` in `{shell.workspace}` (2 lines)" in listed[1]
    assert shell.run("approvals", "list").out.splitlines() == listed
    output = shell.run("approvals", "--json").json
    assert [(each["id"], each["args"]["content"]) for each in output] == [(number, "one\ntwo \u202e three")]
    shown = shell.run("approvals", "show", number[:6])
    assert "Tool 'write_file' (danger=medium) requests approval" in shown.out
    assert "two ‹U+202E› three" in shown.out
    assert "State: pending" in shown.out
    assert shell.run("approvals", "show", number, "--json").json["id"] == number


def test_an_allow_lets_the_call_run_once_and_is_on_record(shell: Shell) -> None:
    number = pending(shell)

    printed = shell.run("approvals", "allow", "--yes", number)
    first, second = write(shell), write(shell)

    assert (printed.status, printed.out.strip()) == (0, f"{number}: allowed")
    assert first.success
    assert first.meta.approved_by == f"{getpass.getuser()} via command line"
    assert not second.success
    (record,) = shell.run("audit", "list", "--kind", "approval", "--json").json
    assert (record["approval"], record["granted"], record["tool"]) == (number, True, "write_file")
    assert shell.run("audit", "verify").status == 0


def test_the_reason_of_a_denial_reaches_the_model(shell: Shell) -> None:
    number = pending(shell)

    printed = shell.run("approvals", "deny", "--yes", number, "--note", "use b.txt", "--json")
    refused = write(shell)

    assert printed.json["state"] == "denied"
    assert "use b.txt" in refused.to_text()
    assert not (shell.workspace / "a.txt").exists()


def test_the_first_decision_stands(shell: Shell) -> None:
    number = pending(shell)
    shell.run("approvals", "deny", "--yes", number)

    late = shell.run("approvals", "allow", "--yes", number)

    assert late.status == 1
    assert "denied (answered by" in late.err
    assert "nothing was changed" in late.err
    assert not write(shell).success


def test_always_shows_its_rule_and_writes_it_when_the_call_is_made(shell: Shell) -> None:
    number = pending(shell)

    both = shell.run("approvals", "allow", "--yes", number, "--always", "--session")
    printed = shell.run("approvals", "allow", "--yes", number, "--always")
    first, second = write(shell), write(shell, "again")

    assert both.status == 2
    assert "this rule will be written" in printed.err
    assert str(shell.workspace / "a.txt") in printed.err
    assert (first.success, second.success) == (True, True)
    assert second.meta.approved_by is None, "the rule allows it"
    assert "approved permanently" in (shell.home / ".config" / "toolreeve" / "policy.yaml").read_text()


def test_what_a_yes_covers_is_chosen_by_its_number(shell: Shell) -> None:
    number = pending(shell)

    shown = shell.run("approvals", "show", number)
    alone = shell.run("approvals", "allow", "--yes", number, "--choice", "2")
    missing = shell.run("approvals", "allow", "--yes", number, "--session", "--choice", "9")
    decided = shell.run("approvals", "allow", "--yes", number, "--session", "--choice", "1")

    assert "'Always' would write" in shown.out
    assert "--choice needs --session or --always" in alone.err
    assert "--choice 9 was not offered" in missing.err
    assert (alone.status, missing.status, decided.status) == (2, 2, 0)


def test_only_some_of_what_a_command_changes_is_kept(shell: Shell) -> None:
    command = "python3 - <<'EOF'\nfor name in 'ab': open(name, 'w').write(name)\nEOF"

    async def run() -> ToolResult:
        async with Toolreeve(workspace=shell.workspace) as reeve:
            client = Client(capabilities={})
            call = ToolCall(tool="bash", args={"command": command}, session="s", origin="mcp", peer=client)
            return await reeve.run(call)

    number = str((asyncio.run(run()).data or {})["approval_id"])
    lasting = shell.run("approvals", "allow", "--yes", number, "--session", "--only", "a")
    decided = shell.run("approvals", "allow", "--yes", number, "--only", "a")
    result = asyncio.run(run())

    assert (lasting.status, decided.status) == (2, 0)
    assert "--only holds for this call" in lasting.err
    assert result.success, result.to_text()
    assert ((shell.workspace / "a").read_text(), (shell.workspace / "b").exists()) == ("a", False)
    assert f"discarded by choice: {shell.workspace}/b" in result.to_text()


def test_an_unknown_id_is_not_found(shell: Shell) -> None:
    for command in ("show", "allow", "deny"):
        printed = shell.run("approvals", command, "0123456789")
        assert printed.status == 5
        assert "no approval has the id '0123456789'" in printed.err


@pytest.mark.parametrize("command", ["allow", "deny"])
def test_without_a_terminal_answers_need_the_option_yes(shell: Shell, command: str) -> None:
    number = pending(shell)

    refused = shell.spawn("approvals", command, number, stdin=b"y\n")
    state = shell.run("approvals", "show", number, "--json").json["state"]

    assert (refused.status, refused.out, state) == (2, "", "pending")
    assert "this needs confirmation by a person" in refused.err
    assert "--yes" not in refused.err


@pytest.mark.parametrize(
    ("command", "typed", "status", "state"),
    [
        ("allow", "y", 0, "allowed"),
        ("allow", "n", 3, "pending"),
        ("allow", "", 3, "pending"),
        ("deny", "yes", 0, "denied"),
    ],
)
def test_on_a_terminal_the_call_is_shown_and_the_person_asked(
    shell: Shell, command: str, typed: str, status: int, state: str
) -> None:
    number = pending(shell)

    with on_terminal(shell, "approvals", command, number) as terminal:
        shown = terminal.shows("it? [y/n]: ")
        terminal.types(f"{typed}\n")

        assert terminal.ends() == status
    assert "content: x" in shown
    assert shell.run("approvals", "show", number, "--json").json["state"] == state


def test_what_was_typed_before_the_question_is_no_answer(shell: Shell) -> None:
    number = pending(shell)

    with on_terminal(shell, "approvals", "allow", number, typed="y\ny\ny\n") as terminal:
        terminal.shows("it? [y/n]: ")
        terminal.types("n\n")

        assert terminal.ends() == 3


READ = "import sqlite3; print(sqlite3.connect('{state}/toolreeve.db').execute('select * from approvals').fetchall())"
ATTACKS = (
    "HOME={home} {python} -m toolreeve approvals allow {number} --yes",
    "{python} -m toolreeve approvals allow {number} --yes",
    "HOME={home} {python} -m toolreeve approvals --json",
    "HOME={home} {python} -m toolreeve trust --yes",
    f'{{python}} -c "{READ}"',
    "cat {state}/toolreeve.db",
    "rm -rf {state}",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_program_that_a_tool_runs_cannot_answer_for_a_person(shell: Shell, attack: str) -> None:
    """Even where everything may run, and our own program lies open to it: the questions are not in its world."""
    number = pending(shell)
    (shell.workspace / ".mcp.json").write_text('{"mcpServers": {"s": {"command": "true"}}}')
    own = shell.home / ".config" / "toolreeve" / "toolreeve.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"[sandbox]\nreadable = ['{SOURCE}', '{own.parent}']\n")
    state, python = shell.home / ".local" / "state" / "toolreeve", shlex.quote(sys.executable)

    async def run(command: str) -> ToolResult:
        async with Toolreeve(workspace=shell.workspace, mode="bypass") as reeve:
            return await reeve.call("bash", command=command)

    assert asyncio.run(run(f"{python} -m toolreeve --version")).success
    result = asyncio.run(run(attack.format(home=shell.home, python=python, number=number, state=state)))

    assert "number" in attack or number not in result.to_text()
    assert shell.run("approvals", "show", number, "--json").json["state"] == "pending"
    assert "not trusted" in shell.run("servers").err
    assert not write(shell).success


def test_watching_needs_a_terminal(shell: Shell) -> None:
    printed = shell.spawn("approvals", "watch")

    assert printed.status == 2
    assert "no terminal" in printed.err


def wait_for_state(shell: Shell, number: str, state: str) -> dict[str, object]:
    end = time.monotonic() + DEADLINE
    while True:
        output: dict[str, object] = shell.run("approvals", "show", number, "--json").json
        if output["state"] == state:
            return output
        assert time.monotonic() < end, output


def test_a_yes_for_a_while_or_for_some_uses_is_one_for_the_session(shell: Shell) -> None:
    number = pending(shell)

    assert shell.run("approvals", "allow", number, "--yes", "--for", "2h", "--uses", "3").status == 0
    (row,) = shell.run("approvals", "--all", "--json").json

    assert (row["answer"]["scope"], row["answer"]["uses"]) == ("session", 3)
    assert 7100 < row["answer"]["expires"] - time.time() <= 7200


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--for soon", "is not a time such as 30m, 2h or 7d"),
        ("--for 0h", "is not a time such as 30m, 2h or 7d"),
        ("--for 13h", "at most 12 hours (approval.session_hours)"),
        ("--uses 1", "1 is not in the range"),
        ("--always --uses 3", "a rule has no number of uses"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused(shell: Shell, words: str, problem: str) -> None:
    number = pending(shell)

    printed = shell.run("approvals", "allow", number, "--yes", *words.split())

    assert printed.status == 2
    assert problem in printed.err
    assert shell.run("approvals", "--json").json[0]["state"] == "pending"


def test_an_always_for_a_while_shows_the_rule_with_its_expiry(shell: Shell) -> None:
    printed = shell.run("approvals", "allow", pending(shell), "--yes", "--always", "--for", "30d")

    assert printed.status == 0
    assert re.search(r'"expires":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', printed.err)
    assert write(shell).success
    assert "expires" in (shell.home / ".config/toolreeve/policy.yaml").read_text()
    assert write(shell, "other").success


def test_a_call_is_allowed_with_edited_arguments_that_are_judged_at_once(shell: Shell) -> None:
    number = pending(shell)

    wrong = shell.run("approvals", "edit", number, "nonsense=5", "--yes")
    outside = shell.run("approvals", "edit", number, "path=/etc/passwd", "--yes")
    edited = shell.run("approvals", "edit", number, "path=b.txt", "content=safe", "--yes")

    assert (wrong.status, outside.status) == (2, 2)
    assert "not valid" in wrong.err
    assert edited.out.strip() == f"{number}: edited"
    assert write(shell).success
    assert (shell.workspace / "b.txt").read_text() == "safe"
    assert not (shell.workspace / "a.txt").exists()


def test_history_tells_who_decided_and_what_is_pending(shell: Shell) -> None:
    number = pending(shell)
    shell.run("approvals", "deny", number, "--yes")
    pending(shell, "other")

    found = shell.run("approvals", "history", "--json").json
    printed = shell.run("approvals", "history")

    (decision,) = found["permissionDecisions"]
    assert decision["source"] == f"person:{getpass.getuser()} via command line"
    assert decision["optionId"] == "deny"
    assert len(found["pendingPermissions"]) == 1
    assert "1 decision, 1 pending" in printed.err


def test_only_a_recipient_is_kept_as_known(shell: Shell) -> None:
    refused = shell.run("approvals", "allow", "--yes", pending(shell), "--know")

    assert (refused.status, "no recipient" in refused.err) == (2, True)
