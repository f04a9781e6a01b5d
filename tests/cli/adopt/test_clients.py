"""Which clients are adopted, and what stays with them."""

import json
import tomllib
from typing import Any

import pytest
import yaml

from tests.cli.adopt.homes import CLAUDE, own, put
from tests.cli.conftest import Shell
from toolreeve.adopt.clients import CLIENTS
from toolreeve.cli.adopt import NAMES
from toolreeve.cli.local_setup import adopt_client, install_hook, list_clients, list_hooks
from toolreeve.cli.options import Options
from toolreeve.core.errors import ToolreeveError


def test_every_client_can_be_named() -> None:
    assert tuple(CLIENTS) == NAMES


def test_one_client_can_be_chosen(installed: Shell) -> None:
    installed.run("adopt", "--no-count", "--client", "codex", "--client", "zed")

    assert list(own(installed)["mcp_servers"]) == ["docs", "z"]
    assert (installed.home / ".claude.json").read_text() == CLAUDE


def test_a_machine_without_clients_is_reported(shell: Shell) -> None:
    done = shell.run("adopt", "--no-count")

    assert (done.status, done.out) == (0, "no client configuration found\n")


@pytest.mark.parametrize("content", ["", "\ufeff", "// nothing\n", "{}", '{"mcpServers": {}}', "null"])
def test_a_client_without_servers_is_left_as_it_is(shell: Shell, content: str) -> None:
    path = put(shell.home / ".cursor/mcp.json", content)

    done = shell.run("adopt", "--no-count")

    assert done.status == 0
    assert "nothing to do" in done.out
    assert path.read_text() == content
    assert not (shell.home / ".config/toolreeve").exists()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "./here"}, "relative to wherever the client starts"),
        ({"command": "x", "sandboxEnabled": True}, "it uses the client's own sandbox"),
        ({"command": "x", "env": {"A": "${command:pick}"}}, "not a valid reference"),
        ("x", "it is not a table"),
    ],
)
def test_what_could_not_work_here_stays_where_it_is(shell: Shell, entry: Any, why: str) -> None:
    path = put(shell.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"a": entry}}))
    before = path.read_text()

    done = shell.run("adopt", "--no-count")

    assert why in done.err
    assert path.read_text() == before


def test_what_a_client_does_not_start_is_not_started_here(shell: Shell) -> None:
    servers = '"mcpServers": {"on": {"command": "a"}, "off": {"command": "b"}, "other": {"command": "c"}}'
    lists = '"mcp": {"allowed": ["On", "off", "toolreeve"], "excluded": ["OFF"]}'
    put(shell.home / ".gemini/settings.json", f"{{{servers}, {lists}}}")

    [row] = shell.run("adopt", "--no-count", "--json").json["clients"]

    assert row["adopted"] == {"on": "on"}
    assert row["kept"] == {
        "off": "Gemini CLI does not start it: mcp.excluded names it",
        "other": "Gemini CLI does not start it: mcp.allowed does not name it",
    }


def test_a_client_that_would_not_start_us_keeps_its_servers(shell: Shell) -> None:
    text = '{"mcpServers": {"a": {"command": "a"}}, "mcp": {"allowed": ["a"]}}'
    path = put(shell.home / ".gemini/settings.json", text)

    done = shell.run("adopt", "--no-count", "--json")

    assert done.status == 1
    assert done.json["clients"][0]["problem"] == (
        "would not start 'toolreeve': mcp.allowed does not name it; change that and run this again"
    )
    assert path.read_text() == text
    assert not (shell.home / ".config/toolreeve/toolreeve.toml").exists()


NEWER: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    ".codeium/windsurf/mcp_config.json": ("mcpServers", {"command": "a", "args": ["x"]}, {}),
    ".qwen/settings.json": ("mcpServers", {"command": "a", "args": ["x"]}, {}),
    ".copilot/mcp-config.json": (
        "mcpServers",
        {"type": "local", "command": "a", "args": ["x"], "tools": ["*"]},
        {"type": "local", "tools": ["*"]},
    ),
    ".config/opencode/opencode.json": (
        "mcp",
        {"type": "local", "command": ["a", "x"], "environment": {"B": "c"}, "enabled": True},
        {"type": "local", "enabled": True},
    ),
}


@pytest.mark.parametrize("file", NEWER)
def test_the_servers_of_newer_agents_are_adopted_in_their_own_format_and_put_back(shell: Shell, file: str) -> None:
    section, entry, kept = NEWER[file]
    path = put(shell.home / file, json.dumps({section: {"s": entry}, "other": 1}))
    before = path.read_text()

    done = shell.run("adopt", "--no-count")
    adopted = own(shell)["mcp_servers"]["s"]
    after = json.loads(path.read_text())

    assert done.status == 0
    assert (adopted["command"], adopted["args"]) == ("a", ["x"])
    assert adopted.get("env", {}) == entry.get("environment", {})
    assert list(after[section]) == ["toolreeve"]
    assert after[section]["toolreeve"].items() >= kept.items()
    assert isinstance(after[section]["toolreeve"]["command"], list) == (section == "mcp")
    assert after["other"] == 1
    assert "keeps its own shell and file tools" in done.err
    assert shell.run("adopt", "--undo").status == 0
    assert path.read_text() == before


GOOSE = """\
GOOSE_MODE: auto  # mine
extensions:
  developer: {type: builtin, name: developer, enabled: true}
  # about notes
  notes:
    type: stdio
    cmd: notes
    args:
      - --all
    envs: {KEY: value}
    enabled: false

  # about far
  far: {type: streamable_http, uri: "https://example.com/mcp", enabled: true, timeout: 300}
  memory:
    type: platform
    name: memory
GOOSE_MODEL: x
"""


def test_the_extensions_of_goose_move_and_come_back(shell: Shell) -> None:
    path = put(shell.home / ".config/goose/config.yaml", GOOSE)

    done = shell.run("adopt", "--no-count", "--json")
    adopted = path.read_text()
    servers = tomllib.loads((shell.home / ".config/toolreeve/toolreeve.toml").read_text())["mcp_servers"]
    undone = shell.run("adopt", "--undo")

    assert (done.status, done.json["clients"][0]["adopted"]) == (0, {"notes": "notes", "far": "far"})
    assert servers["notes"] == {"command": "notes", "args": ["--all"], "env": {"KEY": "value"}, "enabled": False}
    assert servers["far"] == {"url": "https://example.com/mcp", "type": "http"}
    assert yaml.safe_load(adopted)["extensions"].keys() == {"developer", "memory", "toolreeve"}
    assert yaml.safe_load(adopted)["extensions"]["toolreeve"]["args"][-2:] == ["mcp", "--search"]
    assert "GOOSE_MODE: auto  # mine" in adopted
    assert (undone.status, path.read_text()) == (0, GOOSE)


def test_the_extensions_of_goose_come_back_into_a_file_that_was_edited_since(shell: Shell) -> None:
    path = put(shell.home / ".config/goose/config.yaml", GOOSE)
    shell.run("adopt", "--no-count")
    path.write_text(path.read_text().replace("GOOSE_MODEL: x", "GOOSE_MODEL: y"))

    undone = shell.run("adopt", "--undo")

    expected = yaml.safe_load(GOOSE) | {"GOOSE_MODEL": "y"}
    assert (undone.status, yaml.safe_load(path.read_text())) == (0, expected)


@pytest.mark.parametrize(
    "text", ["extensions: {notes: {type: stdio, cmd: notes}}\n", "extensions:\n  notes: &n {cmd: a}\n  more: *n\n"]
)
def test_a_file_of_goose_that_cannot_be_changed_line_by_line_stays(shell: Shell, text: str) -> None:
    path = put(shell.home / ".config/goose/config.yaml", text)

    done = shell.run("adopt", "--no-count", "--json")

    assert done.status == 1
    assert done.json["clients"][0]["problem"]
    assert path.read_text() == text


BY_HAND = {
    ".config/opencode/opencode.json": ('{"mcp": {"servers": {"s": {"type": "local", "command": ["a"]}}}}', ["s"]),
}


@pytest.mark.parametrize("file", BY_HAND)
def test_servers_that_we_do_not_move_are_named_with_what_to_do(shell: Shell, file: str) -> None:
    text, names = BY_HAND[file]
    path = put(shell.home / file, text)

    done = shell.run("adopt", "--no-count", "--json")

    assert done.status == 0
    (client,) = done.json["clients"]
    assert list(client["kept"]) == names
    assert all("toolreeve.toml" in why and "`toolreeve" in why for why in client["kept"].values())
    assert path.read_text() == text
    assert not (shell.home / ".config/toolreeve/toolreeve.toml").exists()


def test_the_consequences_of_adoption_are_listed(installed: Shell) -> None:
    done = installed.run("adopt", "--no-count")

    assert "every client now sees the servers of all clients" in done.err
    assert "ask about every call (`trusted = true`" in done.err


def test_clients_are_listed_with_the_change_that_adoption_would_make(installed: Shell) -> None:
    before = list_clients(Options().configuration())
    installed.run("adopt", "--no-count")
    after = list_clients(Options().configuration())

    found = next(row for row in before if row["file"].endswith("config.toml"))
    assert (found["state"], found["servers"]) == ("found", ["docs"])
    assert found["command"] == "toolreeve adopt --client codex"
    assert "-" in found["preview"]
    assert {row["state"] for row in after} == {"settled"}
    assert (installed.home / ".claude.json").read_text() != CLAUDE


def test_a_client_is_adopted_only_as_it_was_shown(installed: Shell) -> None:
    found = Options().configuration()
    codex = installed.home / ".codex/config.toml"
    shown = next(row for row in list_clients(found) if row["id"] == "codex")
    before = codex.read_text()
    codex.write_text(f"# edited since\n{before}")
    late = adopt_client(found, "codex", shown["version"])
    edited = codex.read_text()
    again = next(row for row in list_clients(found) if row["id"] == "codex")
    done = adopt_client(found, "codex", again["version"])

    assert (late, edited) == (None, f"# edited since\n{before}")
    assert done is not None
    assert str(codex) in done
    assert "toolreeve" in codex.read_text()
    assert (installed.home / ".claude.json").read_text() == CLAUDE
    assert installed.run("adopt", "--undo").status == 0
    assert codex.read_text() == edited


def test_a_hook_is_shown_and_installed(installed: Shell) -> None:
    found = Options().configuration()
    before = {row["client"]: row for row in list_hooks()}
    done = install_hook(found, "codex", before["codex"]["version"])
    after = {row["client"]: row for row in list_hooks()}

    assert (before["codex"]["state"], after["codex"]["state"], after["codex"]["preview"]) == (
        "absent",
        "installed",
        None,
    )
    assert done == [before["codex"]["file"]]
    assert install_hook(found, "codex", before["codex"]["version"]) is None
    with pytest.raises(ToolreeveError, match="claude-code, codex, gemini"):
        install_hook(found, "zed", "any")


def test_each_client_may_see_only_the_servers_that_came_from_it(shell: Shell) -> None:
    goose = put(shell.home / ".config/goose/config.yaml", GOOSE)
    cursor = put(shell.home / ".cursor/mcp.json", '{"mcpServers": {"shop": {"command": "shop"}}}')

    done = shell.run("adopt", "--no-count", "--own-servers", "--json")

    assert done.status == 0
    assert json.loads(cursor.read_text())["mcpServers"]["toolreeve"]["args"][-1] == "--tools=-far,-notes"
    assert yaml.safe_load(goose.read_text())["extensions"]["toolreeve"]["args"][-1] == "--tools=-shop"


def test_hooks_for_the_own_tools_of_adopted_clients_are_offered_and_installed_on_request(installed: Shell) -> None:
    offered = installed.run("adopt", "--no-count", "--client", "claude-code")
    installed.run("adopt", "--undo")
    done = installed.run("adopt", "--no-count", "--client", "claude-code", "--client", "zed", "--hooks")

    assert "`toolreeve hooks install claude-code`" in offered.err
    assert done.status == 0
    assert "Claude Code: hook installed" in done.out
    assert "hook claude-code || exit 2" in (installed.home / ".claude/settings.json").read_text()
    assert not (installed.home / ".codex/hooks.json").exists()
