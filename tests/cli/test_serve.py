"""`toolreeve serve`: where it listens, whom it lets in, and how it ends."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.cli.conftest import Shell
from tests.conformance.gateway import running
from tests.serve.mcp.http_server import HEADERS, request

LISTING = {**HEADERS, "mcp-method": "tools/list"}
TOKENS = """
[[serve.tokens]]
token = "${secret:DOOR}"
user = "ada"
role = "operator"
tools = ["calculate"]
"""


@contextmanager
def served(shell: Shell, *flags: str, settings: str = "", secret: str = "") -> Iterator[str]:
    if settings:
        folder = shell.home / ".config" / "toolreeve"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "toolreeve.toml").write_text(settings)
    command = [sys.executable, "-m", "toolreeve", "serve", "--mcp", "--port", "0", *flags]
    with running(command, shell.workspace, env={"DOOR": secret} if secret else None) as url:
        yield url


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "myhost"])
def test_it_refuses_to_be_reachable_for_others_without_a_token_and_says_what_to_do(shell: Shell, host: str) -> None:
    printed = shell.spawn("serve", "--mcp", "--host", host, "--port", "0")

    assert printed.status == 2
    assert "no token is configured" in printed.err
    assert "serve.tokens" in printed.err
    assert printed.out == ""


def test_a_port_that_is_taken_is_named_with_a_way_out(shell: Shell) -> None:
    with served(shell) as url:
        port = url.split(":")[2].split("/")[0]
        printed = shell.spawn("serve", "--mcp", "--port", port)

    assert printed.status == 2
    assert f"port {port}" in printed.err
    assert "--port" in printed.err


def test_a_word_of_the_toolset_that_chooses_nothing_is_refused(shell: Shell) -> None:
    printed = shell.spawn("serve", "--mcp", "--port", "0", "--tools", "calculat")

    assert (printed.status, "'calculate'" in printed.err) == (2, True)


def test_it_serves_the_chosen_tools_and_stops_at_a_signal(shell: Shell) -> None:
    command = [sys.executable, "-m", "toolreeve", "serve", "--port", "0", "--tools", "calculate"]
    process = subprocess.Popen(command, cwd=shell.workspace, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stderr is not None
    url = process.stderr.readline().decode().split()[3].rstrip(",")
    record = process.stderr.readline()
    secrets = process.stderr.readline()
    assert process.stderr.readline() == b"toolreeve: console, for one login:\n"
    link = process.stderr.readline().decode().strip()
    console = httpx2.post(link, timeout=20)
    another = shell.run("tokens", "link").out
    can: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    listed = httpx2.post(url, json=request("tools/list", meta=can), headers=LISTING, timeout=20).json()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)

    assert [each["name"] for each in listed["result"]["tools"]] == ["calculate"]
    notes = [line for line in err.splitlines() if b"secrets are kept" not in line]
    assert (process.returncode, out, notes) == (0, b"", [])
    assert another.startswith(link.partition("?")[0])
    assert record.startswith(b"toolreeve: record in ")
    assert secrets.startswith(b"toolreeve: secrets are kept in ")
    assert (console.status_code, console.headers["location"]) == (303, "/")


def test_tokens_of_the_settings_open_the_door_and_nothing_else_does(shell: Shell) -> None:
    secret = "a-token-that-nobody-guesses"
    with served(shell, settings=TOKENS, secret=secret) as url:
        bare = httpx2.post(url, json=request("tools/list"), headers=LISTING, timeout=20)
        shown = {**LISTING, "authorization": f"Bearer {secret}"}
        right = httpx2.post(url, json=request("tools/list"), headers=shown, timeout=20)

    assert [bare.status_code, right.status_code] == [401, 200]
    assert "calculate" in right.text
    assert "read_file" not in right.text


def test_a_token_whose_secret_is_not_set_keeps_the_door_shut(shell: Shell) -> None:
    folder = shell.home / ".config" / "toolreeve"
    folder.mkdir(parents=True)
    (folder / "toolreeve.toml").write_text(TOKENS)

    printed = shell.spawn("serve", "--mcp", "--port", "0")

    assert (printed.status, "DOOR" in printed.err) == (2, True)
