"""How far adopted servers are trusted: by flag, by answer, and by default not at all."""

from tests.cli.adopt.homes import own, put
from tests.cli.conftest import Shell
from tests.cli.terminal import on_terminal

CURSOR = '{"mcpServers": {"one": {"command": "a"}, "two": {"command": "b"}}}'


def test_each_server_gets_the_chosen_trust_and_undo_removes_it(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", CURSOR)

    done = shell.run("adopt", "--no-count", "--trust", "all", "--trust", "two=reads")

    assert done.status == 0
    assert own(shell)["mcp_servers"] == {
        "one": {"command": "a", "danger": "safe"},
        "two": {"command": "b", "trusted": True},
    }
    assert "one: all its tools run without asking" in done.err
    assert "two: tools that the server itself calls read-only" in done.err
    assert shell.run("adopt", "--undo").status == 0
    assert not (shell.home / ".config/toolreeve/toolreeve.toml").exists()


def test_nothing_is_trusted_by_default(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", CURSOR)

    shell.run("adopt", "--no-count")

    assert own(shell)["mcp_servers"] == {"one": {"command": "a"}, "two": {"command": "b"}}


def test_a_trusted_server_of_a_second_client_is_not_added_again(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", CURSOR)
    shell.run("adopt", "--no-count", "--trust", "reads")
    put(shell.home / ".codeium/windsurf/mcp_config.json", CURSOR)

    shell.run("adopt", "--no-count")

    assert list(own(shell)["mcp_servers"]) == ["one", "two"]


def test_a_choice_or_server_that_does_not_exist_changes_nothing(shell: Shell) -> None:
    path = put(shell.home / ".cursor/mcp.json", CURSOR)

    wrong_choice = shell.run("adopt", "--no-count", "--trust", "yes")
    wrong_server = shell.run("adopt", "--no-count", "--trust", "three=all")

    assert (wrong_choice.status, wrong_server.status) == (2, 2)
    assert "use ask, reads, all" in wrong_choice.err
    assert "'three' is not among the servers to adopt: one, two" in wrong_server.err
    assert path.read_text() == CURSOR


def test_on_a_terminal_each_server_is_asked_about_with_what_the_choices_mean(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", CURSOR)

    with on_terminal(shell, "adopt", "--no-count", typed="all\n") as screen:
        assert "How far do you trust the server 'one' (a)?" in screen.shows("all: all its tools run")
        screen.shows("(Enter: ask): ")
        screen.types("maybe\n")
        screen.shows("'maybe' is none of them")
        screen.shows("(Enter: ask): ")
        screen.types("r\n")
        screen.shows("the server 'two'")
        screen.shows("(Enter: ask): ")
        screen.types("\n")
        assert screen.ends() == 0

    assert own(shell)["mcp_servers"] == {"one": {"command": "a", "trusted": True}, "two": {"command": "b"}}


def test_a_server_cannot_draw_on_the_screen_where_it_is_asked_about(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", '{"mcpServers": {"one": {"command": "a", "args": ["\\u001b[2J\\rharmless"]}}}')

    with on_terminal(shell, "adopt", "--no-count") as screen:
        assert "\x1b[2J" not in screen.shows("harmless")
        screen.shows("(Enter: ask): ")
        screen.types("\n")
        assert screen.ends() == 0
