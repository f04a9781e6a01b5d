"""`toolreeve agent`, with a scripted model."""

import json

from tests.cli.conftest import Printed, Shell
from toolreeve.testing import ScriptedModel, call, fail, say


def run(shell: Shell, model: ScriptedModel, *options: str) -> Printed:
    address = ("--model", "ollama:scripted", "--base-url", model.base_url("ollama"))
    return shell.run("agent", "run", "What is the answer?", *address, *options)


def test_the_answer_goes_to_stdout_and_the_steps_to_stderr(shell: Shell) -> None:
    (shell.workspace / "notes.txt").write_text("42")
    with ScriptedModel([call("read_file", path="notes.txt"), say("It is 42.")]) as model:
        printed = run(shell, model)

    assert (printed.status, printed.out) == (0, "It is 42.\n")
    assert 'read_file {"path":"notes.txt"}' in printed.err
    assert "2 steps, 1 tool call," in printed.err


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


def test_chat_keeps_the_conversation(shell: Shell) -> None:
    with ScriptedModel([say("hello Ann"), say("you are Ann")]) as model:
        address = ("--model", "ollama:scripted", "--base-url", model.base_url("ollama"))
        printed = shell.spawn("agent", "chat", *address, stdin=b"I am Ann\n/nonsense\nWho am I?\n/cost\n/quit\n")

    assert printed.status == 0
    assert "hello Ann" in printed.out
    assert "/help" in printed.err
    assert "I am Ann" in str(model.requests[1])


def test_a_chat_is_one_run_and_goes_on_in_another_session(shell: Shell) -> None:
    with ScriptedModel([say("hello Ann"), say("fine")]) as model:
        address = ("--model", "ollama:scripted", "--base-url", model.base_url("ollama"))
        left = shell.spawn("agent", "chat", *address, stdin=b"I am Ann\nAnd you?\n")
    (chat,) = shell.run("agent", "list", "--json").json
    with ScriptedModel([say("you are Ann")]) as model:
        resumed = ("--resume", chat["id"][:8], "--base-url", model.base_url("ollama"))
        again = shell.spawn("agent", "chat", *resumed, stdin=b"Who am I?\n")

    assert f"agent chat --resume {chat['id'][:8]}" in left.err
    assert (chat["question"], chat["steps"]) == ("I am Ann", 2)
    assert "you are Ann" in again.out
    assert "I am Ann" in str(model.requests[0])
    (chat,) = shell.run("agent", "list", "--json").json
    assert len(shell.run("agent", "replay", chat["id"], "--json").json["messages"]) == 6
    assert (shell.home / ".local/state/toolreeve/agent_history").stat().st_mode & 0o077 == 0


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


def test_an_unknown_run_is_named(shell: Shell) -> None:
    printed = shell.run("agent", "replay", "nope")

    assert printed.status != 0
    assert "toolreeve agent list" in printed.err


def test_a_model_that_is_not_configured_is_bad_usage_and_an_unknown_run_is_not_found(shell: Shell) -> None:
    assert shell.run("agent", "run", "hi").status == 2
    assert shell.run("agent", "run", "hi", "--model", "nope:x").status == 2
    assert shell.run("agent", "replay", "zzz").status == 5
