"""The servers behind us, as a person sees them on the command line."""

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.terminal import on_terminal
from tests.upstream.http_servers import served
from tests.upstream.oauth_server import OAuthServer
from tests.upstream.server_tables import from_file, light, tool


@pytest.fixture
def offer(shell: Shell, tmp_path: Path) -> Path:
    """Two servers in a workspace that is trusted: one whose offer stands in a file, and one that cannot be started."""
    path = tmp_path / "offer.json"
    table = from_file(path, {"tools": [tool("echo"), tool("reаd")]})
    configured = shell.workspace / ".mcp.json"
    configured.write_text(json.dumps({"mcpServers": {"good": table, "bad": {"command": "/nonexistent"}}}))
    assert shell.run("trust", "--yes").status == 0
    return path


def test_servers_are_listed_with_what_is_wrong_with_them(shell: Shell, offer: Path) -> None:
    listed = {each["name"]: each for each in shell.run("servers", "--json").json}
    table = shell.run("servers").out

    assert (listed["good"]["state"], listed["good"]["tools"]) == ("up", 1)
    assert listed["bad"]["state"] == "failed"
    assert "No such file" in listed["bad"]["problem"]
    assert "invisible" in table
    assert "good" in table
    assert offer.exists()


@pytest.mark.usefixtures("offer")
def test_a_server_is_shown_and_tested(shell: Shell) -> None:
    shown, tested, failed = (
        shell.run("servers", "show", "good"),
        *(shell.run("servers", "test", name) for name in ("good", "bad")),
    )

    assert "good__echo" in shown.out
    assert (tested.status, failed.status) == (0, 6)
    assert "reports:    light 1" in tested.out


def test_a_server_that_cannot_be_used_as_it_is_written_down_is_listed_with_the_reason(shell: Shell) -> None:
    own = shell.home / ".config" / "toolreeve" / "toolreeve.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        '[mcp_servers.web]\nurl = "https://a/"\nheaders = { Authorization = "Bearer ${NOT_SET_HERE}" }\n\n'
        '[mcp_servers.lost]\ncommand = "true"\ncwd = "/nonexistent/here"\n'
    )

    listed = {each["name"]: each for each in shell.run("servers", "--json").json}
    table = shell.run("servers", "list").out
    shown = shell.run("servers", "show", "web")

    assert (listed["web"]["state"], listed["web"]["source"]) == ("not configured", f"{own}:1")
    assert "the variable NOT_SET_HERE is not set (export NOT_SET_HERE" in listed["web"]["problem"]
    assert "not configured" in table
    assert listed["lost"]["problem"] == (f"its cwd '/nonexistent/here' does not exist ({own}:5)")
    assert shown.status == 2
    assert "web is not configured: mcp_servers.web.headers.Authorization: the variable NOT_SET_HERE" in shown.err


def test_a_secret_in_an_entry_is_veiled_wherever_a_server_is_shown(shell: Shell) -> None:
    own = shell.home / ".config" / "toolreeve" / "toolreeve.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        '[mcp_servers.s]\ncommand = "/bin/sh"\n'
        'args = ["-c", "echo $0 $2 $API_TOKEN >&2", "--token=hunter-two-2", "--key", "hunter-two-2"]\n'
        'env = { API_TOKEN = "hunter-three" }\n'
    )

    printed = [shell.run("servers", *words) for words in ((), ("--json",), ("show", "s"), ("test", "s"))]

    answer = "".join(each.out + each.err for each in printed)
    assert "--token=[redacted]" in answer
    assert "hunter" not in answer


@pytest.mark.usefixtures("offer")
def test_an_unknown_server_is_answered_with_the_nearest(shell: Shell) -> None:
    answered = shell.run("servers", "show", "goood")

    assert answered.status == 5
    assert "did you mean 'good'?" in answered.err


def test_a_changed_tool_is_refused_even_in_bypass_until_it_is_shown_and_accepted(shell: Shell, offer: Path) -> None:
    called = shell.run("call", "good__echo", "a=1", "--mode", "bypass")
    offer.write_text(json.dumps({"tools": [tool("echo", description="now \x1b[2Jelse")]}))

    refused = shell.run("call", "good__echo", "a=1", "--mode", "bypass")
    listed = shell.run("servers", "--json").json
    looked = shell.run("servers", "show", "good")
    shown = shell.spawn("servers", "accept", "good", stdin=b"y\n")
    accepted = shell.run("servers", "accept", "good", "--yes")
    again = shell.run("servers", "accept", "good")
    taken = shell.run("call", "good__echo", "a=1", "--mode", "bypass")

    assert called.status == 0, called.err
    assert refused.status != 0
    assert "toolreeve servers accept good" in refused.err
    assert "else" not in refused.err
    assert listed[0]["changed"] == ["echo"]
    assert "+now ‹U+001B›[2Jelse" in looked.err
    assert shown.status == 2
    assert "this needs confirmation by a person" in shown.err
    assert "‹U+001B›" in shown.err
    assert "\x1b" not in shown.err
    assert accepted.out.strip() == "accepted: echo"
    assert "no changes to accept" in again.err
    assert taken.status == 0


def test_only_the_named_tools_are_accepted(shell: Shell, offer: Path) -> None:
    offer.write_text(json.dumps({"tools": [tool("one"), tool("two")]}))
    assert shell.run("servers", "test", "good").status == 0
    offer.write_text(json.dumps({"tools": [tool("one", title="1"), tool("two", title="2")]}))
    assert shell.run("servers", "test", "good").status == 0

    unknown = shell.run("servers", "accept", "good", "two", "three", "--yes")
    accepted = shell.run("servers", "accept", "good", "good__two", "--yes", "--json").json

    assert unknown.status == 5
    assert "no change of 'three' to accept; changed tools: one, two" in unknown.err
    assert accepted == {"server": "good", "accepted": ["two"], "changed_again": []}
    assert shell.run("servers", "--json").json[0]["changed"] == ["one"]


@pytest.mark.parametrize(("said", "status", "changed"), [("n", 3, ["echo"]), ("y", 0, [])])
def test_on_a_terminal_a_person_is_asked(shell: Shell, offer: Path, said: str, status: int, changed: list[str]) -> None:
    shell.run("servers", "test", "good")
    offer.write_text(json.dumps({"tools": [tool("echo", title="else")]}))
    shell.run("servers", "test", "good")

    with on_terminal(shell, "servers", "accept", "good", typed="y\n") as terminal:
        shown = terminal.shows("Accept the change of 'echo' by good? [y/n]: ")
        terminal.types(f"{said}\n")

        assert terminal.ends() == status
    assert "+else" in shown
    assert shell.run("servers", "--json").json[0]["changed"] == changed


async def test_a_person_logs_in_with_a_browser_and_out_again(shell: Shell, tmp_path: Path) -> None:
    browser = tmp_path / "browser.py"
    browser.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n")
    opens = {"BROWSER": f"{shlex.quote(sys.executable)} {browser} %s"}
    oauth_server = OAuthServer()
    async with served(oauth_server.application()) as origin:
        oauth_server.metadata = {"revocation_endpoint": f"{origin}/revoke"}
        own = shell.home / ".config" / "toolreeve" / "toolreeve.toml"
        own.parent.mkdir(parents=True)
        own.write_text(f'[mcp_servers.web]\nurl = "{origin}/mcp"\n')

        before = await asyncio.to_thread(shell.spawn, "servers", "test", "web")
        came = await asyncio.to_thread(shell.spawn, "servers", "login", "web", env=opens)
        within = await asyncio.to_thread(shell.spawn, "servers", "test", "web")
        left = await asyncio.to_thread(shell.spawn, "servers", "logout", "web")
        after = await asyncio.to_thread(shell.spawn, "servers", "test", "web")

    assert (came.out.strip(), left.out.strip()) == ("logged in to web", "logged out of web; its tokens are revoked")
    assert [each.status for each in (before, came, within, left, after)] == [6, 0, 0, 0, 6]
    assert "secret-" not in came.out + came.err + left.out + left.err
    assert len(oauth_server.revoked) == 2


def test_without_servers_the_way_to_some_is_shown(shell: Shell) -> None:
    listed = shell.run("servers")

    assert (listed.status, listed.out) == (0, "")
    assert "adopt" in listed.err


@pytest.mark.usefixtures("offer")
def test_a_server_that_is_started_here_asks_for_no_login(shell: Shell) -> None:
    answered = shell.run("servers", "login", "good")

    assert answered.status == 2
    assert "no login" in answered.err


def test_a_call_of_a_local_tool_starts_no_server(shell: Shell, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    table = {"command": "/bin/sh", "args": ["-c", f"touch {mark}"]}
    (shell.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": table, "t": light()}}))
    assert shell.run("trust", "--yes").status == 0

    assert shell.run("call", "calculate", "expression=1+1").status == 0
    assert not mark.exists()


@pytest.mark.usefixtures("offer")
def test_the_doctor_looks_at_every_server(shell: Shell) -> None:
    found = {each["name"]: each for each in shell.run("doctor", "--json").json["checks"] if each["area"] == "server"}

    assert (found["good"]["status"], found["good"]["found"]) == ("warn", "1 tool, 1 left out")
    assert found["bad"]["status"] == "warn"
    assert found["bad"]["fix"] == "run `toolreeve servers test bad`"


@pytest.mark.usefixtures("offer")
def test_tools_of_servers_are_listed_and_shown_on_request(shell: Shell) -> None:
    alone = {each["name"] for each in shell.run("tools", "--json").json}
    together = {each["name"] for each in shell.run("tools", "--servers", "--json").json}

    assert together - alone == {"good__echo"}
    assert shell.run("tools", "good__echo", "--json").json["server"] == "good"


def test_the_policy_explains_calls_of_tools_elsewhere(shell: Shell, offer: Path) -> None:
    asked = shell.run("policy", "explain", "good__echo", "a=1", "--json").json
    offer.write_text(json.dumps({"tools": [tool("echo", title="else")]}))
    changed = shell.run("policy", "explain", "good__echo", "a=1", "--mode", "bypass", "--json").json
    away = shell.run("policy", "explain", "bad__echo")

    assert (asked["effect"], asked["layer"]) == ("ask", "default")
    assert (changed["effect"], changed["layer"]) == ("deny", "tool")
    assert changed["reason"].startswith("E_TOOL_CHANGED: ")
    assert changed["change"] == "toolreeve servers accept good"
    assert "server 'bad' is unavailable" in away.err


@pytest.mark.usefixtures("offer")
def test_cases_may_be_about_tools_elsewhere(shell: Shell) -> None:
    cases = shell.workspace / "cases.yaml"
    cases.write_text("- {tool: good__echo, args: {a: 1}, expect: ask}\n- {tool: calculate, expect: allow}\n")

    assert shell.run("policy", "test", str(cases)).status == 1
    cases.write_text("- {tool: good__echo, args: {a: 1}, expect: ask}\n")
    assert shell.run("policy", "test", str(cases)).status == 0


def test_a_wrapper_that_starts_us_as_our_own_server_does_not_go_on_without_end(shell: Shell) -> None:
    own = shell.home / ".config" / "toolreeve" / "toolreeve.toml"
    own.parent.mkdir(parents=True)
    command = f"exec {shlex.quote(sys.executable)} -m toolreeve --workspace {shlex.quote(str(shell.workspace))} mcp"
    own.write_text(f'[mcp_servers.again]\ncommand = "/bin/sh"\nargs = ["-c", {json.dumps(command)}]\n')

    names = {each["name"] for each in shell.run("tools", "--servers", "--json").json}

    assert "again__read_file" in names
    assert not [name for name in names if name.startswith("again__again")]


@pytest.mark.usefixtures("offer")
@pytest.mark.parametrize(
    ("command", "says"),
    [(["servers"], "connecting to good, bad …"), (["tools", "--servers"], "connecting to 2 servers …")],
)
def test_a_terminal_shows_what_is_being_connected_to_and_erases_it(shell: Shell, command: list[str], says: str) -> None:
    with on_terminal(shell, *command) as terminal:
        terminal.shows(says)
        terminal.shows("\r\x1b[K")
        terminal.shows("good")
    assert "connecting" not in shell.run(*command).err
