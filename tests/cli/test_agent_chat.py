"""`toolreeve agent chat` on a terminal of its own."""

from tests.cli.conftest import Shell
from tests.cli.terminal import on_terminal
from toolreeve.testing import ScriptedModel, call, fail, say


def test_an_interrupt_ends_the_run_or_clears_the_line_and_keeps_the_conversation(shell: Shell) -> None:
    (shell.workspace / "notes.txt").write_text("42")
    turns = [
        say("One moment.") | call("read_file", path="notes.txt") | call("\x1b[31mevil", x="\x1b[2J"),
        call("bash", command="sleep 60"),
        say("I am here."),
    ]
    with ScriptedModel(turns) as model:
        address = ("--model", "ollama:scripted", "--base-url", model.base_url("ollama"))
        with on_terminal(shell, "agent", "chat", *address, "--mode", "accept_edits") as terminal:
            terminal.shows("> ")
            terminal.types("half a line")
            terminal.shows("half a line")
            terminal.types("\x03")
            terminal.shows("> ")
            terminal.types("read the notes, then \\\n")
            terminal.shows(". ")
            terminal.types("sleep\n")
            shown = terminal.shows('bash {"command":"sleep 60"}')
            terminal.types("\x03")
            terminal.shows("interrupted; the conversation is kept")
            terminal.shows("> ")
            terminal.types("still there?\n")
            terminal.shows("I am here.")
            terminal.shows("> ")
            terminal.types("\x04")
            assert terminal.ends() == 0

    assert "One moment." in shown
    assert "\x1b[31mevil" not in shown
    assert "‹U+001B›[31mevil failed: E_TOOL_NOT_FOUND" in shown
    assert "read the notes, then \nsleep" in model.requests[0]["messages"][1]["content"]
    assert "the run was interrupted during this call" in str(model.requests[2])


def test_a_provider_that_refuses_does_not_end_the_chat(shell: Shell) -> None:
    with ScriptedModel([fail(401, "invalid key"), say("now it works")]) as model:
        address = ("--model", "ollama:scripted", "--base-url", model.base_url("ollama"))
        printed = shell.spawn("agent", "chat", *address, stdin=b"hi\nagain\n")

    assert printed.status == 0
    assert "invalid key" in printed.err
    assert "now it works" in printed.out


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
