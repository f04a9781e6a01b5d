"""Questions of clients that cannot ask: stored, answered by a person, used by the next same call."""

import asyncio
import json
from typing import Any

import pytest

from tests.hook.conftest import HookAnswer, Person

RM = {"command": "rm -rf build"}


def answer_all(person: Person, *args: str) -> str:
    (question,) = json.loads(person.cli("approvals", "--json"))
    person.cli("approvals", args[0], question["id"], "--yes", *args[1:])
    return str(question["id"])


def codex(person: Person, args: dict[str, Any], **more: Any) -> HookAnswer:
    return person.hook("Bash", args, client="codex", **more)


@pytest.mark.parametrize("served", [False, True])
def test_an_ask_of_codex_waits_for_a_person_and_the_next_same_call_runs_once(person: Person, *, served: bool) -> None:
    with person.server() if served else person.nothing():
        first = codex(person, RM)
        again = codex(person, RM)
        number = answer_all(person, "allow")
        other = codex(person, {"command": "rm -rf src"})
        allowed = codex(person, RM, session_id="another session")
        used = codex(person, RM)

    assert (first.decision, again.decision, other.decision, used.decision) == ("deny",) * 4
    assert f"approval {number} is pending" in first.reason
    assert number in again.reason, "the same question is stored once"
    assert allowed.out == "", "Codex takes silence for consent"
    records = asyncio.run(person.records(kind="call", tool="bash"))
    assert [(each.body.get("approved_by") or "")[-12:] for each in records].count("command line") == 1
    assert [each.body.get("code") for each in records].count("E_APPROVAL_PENDING") == 4


def test_a_denial_reaches_the_model_with_its_note(person: Person) -> None:
    codex(person, RM)
    answer_all(person, "deny", "--note", "use make clean")
    refused = codex(person, RM)

    assert refused.decision == "deny"
    assert refused.reason.endswith(": use make clean")


def test_the_question_shows_the_clients_own_call_and_every_file_of_a_patch(person: Person) -> None:
    patch = "*** Begin Patch\n*** Update File: a.txt\n+x\n*** Delete File: b.txt\n*** End Patch"
    refused = person.hook("apply_patch", {"command": patch}, client="codex")
    (question,) = json.loads(person.cli("approvals", "--json"))
    shown = person.cli("approvals", "show", question["id"])

    assert refused.decision == "deny"
    assert all(each in shown for each in ("+x", f"write {person.project}/a.txt", f"delete {person.project}/b.txt"))


def test_a_client_that_asks_itself_leaves_no_question_but_uses_an_answer_of_codex_not(person: Person) -> None:
    codex(person, RM)
    answer_all(person, "allow")

    assert person.hook("Bash", RM).decision == "ask"
    assert json.loads(person.cli("approvals", "--json")) == []


def test_an_answer_does_not_outlive_the_policy_that_asked(person: Person) -> None:
    codex(person, RM)
    answer_all(person, "allow")
    rule = "rules:\n  - {decision: ask, tool: bash, program: rm}\n"
    (person.home / ".config/toolreeve/policy.yaml").write_text(rule)
    asked = codex(person, RM)

    assert asked.out, asked.err
    assert (asked.decision, "is pending" in asked.reason) == ("deny", True)
