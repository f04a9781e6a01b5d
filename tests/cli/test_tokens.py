"""`toolreeve tokens link`: only for a server that runs, and a word about one of another version."""

from tests.cli.conftest import Shell
from toolreeve.serve.running_server import RunningServer, announce


def test_there_is_no_link_without_a_server(shell: Shell) -> None:
    refused = shell.run("tokens", "link")
    named = shell.run("tokens", "link", "--url", "http://gateway.example:8733/")

    assert (refused.status, refused.out) == (6, "")
    assert "start `toolreeve serve`, or name the server with --url" in refused.err
    assert named.out.startswith("http://gateway.example:8733/login?code=")


def test_a_server_of_another_version_is_to_be_restarted(shell: Shell) -> None:
    with announce(shell.home / ".local/state/toolreeve", RunningServer("http://127.0.0.1:9999", "0.0.9")):
        made = shell.run("tokens", "link")
        checks = {each["name"]: each for each in shell.run("doctor", "--json").json["checks"]}

    assert made.out.startswith("http://127.0.0.1:9999/login?code=")
    assert "the server runs version 0.0.9" in made.err
    found = checks["toolreeve serve"]
    assert (found["status"], found["fix"]) == ("warn", "restart `toolreeve serve`")
