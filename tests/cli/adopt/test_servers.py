"""What becomes of the servers: where they go, under which names, and what the client has in their stead."""

import json
import sys
import tomllib
from pathlib import Path

from tests.cli.adopt.homes import everything, own, put
from tests.cli.conftest import Shell
from toolreeve.cli.adopt import own_command


def test_the_servers_of_all_clients_come_into_the_users_file(installed: Shell) -> None:
    done = installed.run("adopt", "--no-count", "--json")

    assert done.status == 0
    assert own(installed)["mcp_servers"] == {
        "github": {
            "type": "http",
            "url": "https://api.example.com/mcp",
            "headers": {"Authorization": "Bearer ${GH:-x}"},
        },
        "fs": {"command": "npx", "args": ["-y", "fs"], "env": {"A": "literal"}},
        "local": {"command": "/p/one/run.sh", "cwd": "/p/one"},
        "github-cursor": {"command": "other"},
        "play": {"type": "stdio", "command": "npx", "args": ["play"]},
        "docs": {"command": "docs", "connect_timeout": 20, "env": {"TOKEN": "x"}},
        "g": {"url": "http://localhost:1/sse", "headers": {"K": "${KEY}"}, "type": "sse"},
        "z": {"command": "zc"},
    }
    rows = {row["client"]: row for row in done.json["clients"]}
    assert rows["Claude Code"]["lost"] == [
        "local: it was configured for /p/one only, and is now available in every folder"
    ]
    assert rows["Cursor"]["adopted"] == {"files": "fs", "github": "github-cursor"}
    assert rows["Cursor"]["lost"] == ["github: autoApprove has no effect here: the policy decides what needs approval"]
    assert rows["VS Code"]["lost"] == ["play: dev has no meaning here and is not carried over"]
    assert list(rows["VS Code"]["kept"]) == ["asks"]
    assert list(rows["Zed"]["kept"]) == ["ext"]
    assert done.json["tokens"] is None


def test_each_client_is_left_with_one_entry_of_ours_and_what_could_not_come(installed: Shell) -> None:
    installed.run("adopt", "--no-count")
    entry = {"command": own_command()[0], "args": ["mcp", "--search"]}

    claude = json.loads((installed.home / ".claude.json").read_text())
    assert claude["mcpServers"] == {"toolreeve": {"type": "stdio", **entry}}
    assert claude["projects"] == {"/p/one": {"history": ["a b"], "mcpServers": {}}, "/p/two": {"mcpServers": {}}}
    codex = (installed.home / ".codex/config.toml").read_text()
    assert tomllib.loads(codex) == {"model": "o5", "mcp_servers": {"toolreeve": entry}, "tui": {"theme": "dark"}}
    assert "# keep" in codex
    assert "# about tui" in codex
    gemini = json.loads((installed.home / ".gemini/settings.json").read_text())
    assert gemini == {"theme": "x", "mcpServers": {"toolreeve": entry}}
    code = (installed.home / ".config/Code/User/mcp.json").read_text()
    assert "// my servers" in code
    assert '"${input:key}"' in code
    assert "/* end */" in code
    cursor = (installed.home / ".cursor/mcp.json").read_bytes().decode()
    assert cursor.startswith('\ufeff{\r\n\t"mcpServers": {\r\n\t\t"toolreeve": {\r\n')
    assert "\n" not in cursor.replace("\r\n", "")
    assert '"source": "custom"' in (installed.home / ".config/zed/settings.json").read_text()


def test_the_entry_leads_to_us_by_its_whole_path() -> None:
    program, *rest = own_command()

    assert Path(program).is_absolute()
    assert Path(program).is_file()
    assert rest[-1] == "mcp"
    assert Path(program).parent == Path(sys.executable).parent


def test_searching_instead_of_listing_is_written_into_the_entry(installed: Shell) -> None:
    installed.run("adopt", "--no-count", "--client", "gemini")
    installed.run("adopt", "--no-count", "--no-search", "--client", "codex")

    entry = json.loads((installed.home / ".gemini/settings.json").read_text())["mcpServers"]["toolreeve"]
    assert entry["args"] == ["mcp", "--search"]
    assert 'args = ["mcp"]' in (installed.home / ".codex/config.toml").read_text()


def test_adopting_twice_changes_nothing(installed: Shell) -> None:
    installed.run("adopt", "--no-count")
    before = everything(installed)

    again = installed.run("adopt", "--no-count", "--json")

    assert everything(installed) == before
    assert (again.status, again.json["changed"], again.json["backups"]) == (0, [], None)


def test_servers_that_a_client_got_since_are_adopted_beside_our_entry(installed: Shell) -> None:
    installed.run("adopt", "--no-count")
    path = installed.home / ".gemini/settings.json"
    before = path.read_text()
    path.write_text(before.replace('"mcpServers":{', '"mcpServers":{"new": {"command": "n"}, '))

    done = installed.run("adopt", "--no-count", "--json")

    assert done.json["added"] == ["new"]
    assert path.read_text() == before
    installed.run("adopt", "--undo")
    assert list(json.loads(path.read_text())["mcpServers"]) == ["new", "toolreeve"]
    installed.run("adopt", "--undo")
    assert path.read_text().count("toolreeve") == 0


def test_servers_of_codex_are_found_in_either_kind_of_table(shell: Shell) -> None:
    text = '[mcp_servers.a]\ncommand = "a"\n\n[mcp_servers]\nb = { command = "b" } # inline\n'
    path = put(shell.home / ".codex/config.toml", text)

    done = shell.run("adopt", "--no-count", "--json")

    assert [row["adopted"] for row in done.json["clients"]] == [{"a": "a", "b": "b"}]
    assert list(tomllib.loads(path.read_text())["mcp_servers"]) == ["toolreeve"]


def test_what_the_user_wrote_stays_as_it_was_written(installed: Shell) -> None:
    mine = '# mine\n[mcp_servers.fs]   # my own\ncommand = "mine"\n'
    path = put(installed.home / ".config/toolreeve/toolreeve.toml", mine)

    installed.run("adopt", "--no-count", "--client", "claude-code")

    assert path.read_text().startswith(mine)
    assert own(installed)["mcp_servers"]["fs"] == {"command": "mine"}
    assert own(installed)["mcp_servers"]["fs-claude-code"]["command"] == "npx"


def test_a_list_of_tools_that_lets_nothing_through_still_does_not(shell: Shell) -> None:
    put(shell.home / ".codex/config.toml", '[mcp_servers.a]\ncommand = "a"\nenabled_tools = []\n')

    shell.run("adopt", "--no-count")

    assert own(shell)["mcp_servers"]["a"] == {"command": "a", "allow": []}


def test_a_server_is_the_same_whether_or_not_its_entry_says_how_it_is_reached(shell: Shell) -> None:
    entry = {"command": "npx", "args": ["fs"]}
    put(shell.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"fs": entry}}))
    put(shell.home / ".claude.json", json.dumps({"mcpServers": {"files": {"type": "stdio", **entry}}}))

    shell.run("adopt", "--no-count")

    assert list(own(shell)["mcp_servers"]) == ["files"]
