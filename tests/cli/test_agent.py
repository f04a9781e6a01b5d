"""`toolreeve agent`, with a scripted model."""

import json
import re

import pytest

from tests.cli.conftest import Printed, Shell
from toolreeve.testing import ScriptedModel, call, fail, say


def run(shell: Shell, model: ScriptedModel, *options: str) -> Printed:
    address = ("--model", "ollama:scripted", "--base-url", model.base_url("ollama"))
    return shell.run("agent", "run", "What is the answer?", *address, *options)


def test_the_answer_goes_to_stdout_and_the_steps_to_stderr(shell: Shell) -> None:
    (shell.workspace / "notes.txt").write_text("42")
    with ScriptedModel([say("Reading.") | call("read_file", path="notes.txt"), say("It is 42.")]) as model:
        printed = run(shell, model)

    assert (printed.status, printed.out) == (0, "It is 42.\n")
    assert 'read_file {"path":"notes.txt"}' in printed.err
    assert re.search(r"step 1, [0-9.]+ s, \$0\.0000: Reading\.", printed.err)
    assert re.search(r"2 steps, 1 tool call, 240 tokens, \$0\.0000, [0-9.]+ s", printed.err)


def test_json_prints_every_event_as_a_line(shell: Shell) -> None:
    with ScriptedModel([say("yes")]) as model:
        events = [json.loads(line) for line in run(shell, model, "--json").out.splitlines()]

    assert [event["event"] for event in events] == ["started", "text", "turn", "ended"]
    assert events[-1]["outputs"] == {"answer": "yes"}


def test_a_run_that_does_not_complete_fails_and_says_why(shell: Shell) -> None:
    with ScriptedModel([call("read_file", path="/etc/shadow")]) as model:
        printed = run(shell, model)

    assert printed.status == 1
    assert "E_PATH_FORBIDDEN" in printed.err


def test_a_model_that_does_not_exist_is_named(shell: Shell) -> None:
    with ScriptedModel([fail(404, "model 'scripted' not found")]) as model:
        printed = run(shell, model)

    assert printed.status == 1
    assert "model 'scripted' not found" in printed.err


def test_without_a_model_the_setting_is_named(shell: Shell) -> None:
    printed = shell.run("agent", "run", "x")

    assert printed.status == 2
    assert "agent.model" in printed.err


def test_a_run_is_recorded_listed_and_replayed_without_a_model(shell: Shell) -> None:
    (shell.workspace / "notes.txt").write_text("42")
    with ScriptedModel([call("read_file", path="notes.txt"), say("It is 42.")]) as model:
        run(shell, model)

    (listed,) = shell.run("agent", "list", "--json").json
    assert (listed["question"], listed["stop"], listed["steps"]) == ("What is the answer?", "completed", 2)
    short_id = shell.run("agent", "list").out.splitlines()[1].split()[0]
    assert len(short_id) < len(listed["id"])
    replayed = shell.run("agent", "replay", short_id).out
    assert replayed.splitlines() == [
        "> What is the answer?",
        '  read_file {"path":"notes.txt"}',
        "    [untrusted] 42",
        "It is 42.",
    ]


def test_a_run_is_resumed_with_its_whole_conversation(shell: Shell) -> None:
    (shell.workspace / "notes.txt").write_text("the code is 42")
    with ScriptedModel([call("read_file", path="notes.txt")]) as model:
        run(shell, model, "--max-steps", "1")
    (stopped,) = shell.run("agent", "list", "--json").json
    assert stopped["stop"] == "max_steps"

    with ScriptedModel([say("It is 42.")]) as model:
        resumed = shell.run("agent", "resume", stopped["id"], "--base-url", model.base_url("ollama"))

    assert resumed.out == "It is 42.\n"
    assert model.rejections == []
    assert "the code is 42" in str(model.requests[0])
    (done,) = shell.run("agent", "list", "--json").json
    assert (done["stop"], done["steps"]) == ("completed", 2)
    assert len(shell.run("agent", "replay", done["id"], "--json").json["messages"]) == 5


def test_a_resumed_run_is_in_the_session_of_the_first(shell: Shell) -> None:
    """So what it read, and what the user said, still counts."""
    (shell.workspace / "notes.txt").write_text("the code is 42")
    with ScriptedModel([call("read_file", path="notes.txt")]) as model:
        run(shell, model, "--max-steps", "1")
    (first,) = shell.run("agent", "list", "--json").json

    with ScriptedModel([call("calculate", expression="6*7"), say("done")]) as model:
        shell.run("agent", "resume", first["id"], "--base-url", model.base_url("ollama"))

    calls = shell.run("audit", "list", "--json").json
    sessions = {call["tool"]: call["session"] for call in calls if call["tool"] in ("read_file", "calculate")}
    assert sessions == {"read_file": first["session"], "calculate": first["session"]}


def test_a_budget_for_a_model_without_a_price_is_refused(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with ScriptedModel([say("hello")]) as model:
        address = ("--model", "openai:nobody-knows", "--base-url", model.base_url("openai"))
        refused = shell.run("agent", "run", "hi", *address, "--budget", "0.5")
        printed = shell.run("agent", "run", "hi", *address)

    assert refused.status != 0
    assert "no price is known for 'nobody-knows'" in refused.err
    assert "no known price" in printed.err


def test_an_unknown_run_is_named(shell: Shell) -> None:
    printed = shell.run("agent", "replay", "nope")

    assert printed.status != 0
    assert "toolreeve agent list" in printed.err


def test_a_model_that_is_not_configured_is_bad_usage_and_an_unknown_run_is_not_found(shell: Shell) -> None:
    assert shell.run("agent", "run", "hi").status == 2
    assert shell.run("agent", "run", "hi", "--model", "nope:x").status == 2
    assert shell.run("agent", "replay", "zzz").status == 5
