import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell
from toolreeve.cli.adopt import NAMES, ourselves
from toolreeve.clients.known import CLIENTS

CLAUDE = """{
  "numStartups": 3,
  "mcpServers": {
    "github": { "type": "http", "url": "https://api.example.com/mcp", "headers": {"Authorization": "Bearer ${GH:-x}"} },
    "fs": { "command": "npx", "args": ["-y", "fs"], "env": {"A": "literal"} }
  },
  "projects": {
    "/p/one": { "history": ["a b"], "mcpServers": { "local": {"command": "./run.sh", "args": []} } },
    "/p/two": { "mcpServers": {} }
  }
}
"""
CURSOR = (
    '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"files": {"command": "npx", "args": ["-y", "fs"], "env": {"A": "literal"}},'
    '\r\n\t\t"github": {"command": "other", "autoApprove": ["*"]}\r\n\t}\r\n}\r\n'
)
VSCODE = """{
    // my servers
    "servers": {
        "asks": { "type": "stdio", "command": "x", "env": { "K": "${input:key}" } },
        "play": { "type": "stdio", "command": "npx", "args": ["play"], "dev": {"watch": "x"} },
    },
    "inputs": [ { "id": "key", "type": "promptString" } ], /* end */
}
"""
CODEX = """model = "o5" # keep

[mcp_servers.docs]
command = "docs"
startup_timeout_sec = 20
[mcp_servers.docs.env]
TOKEN = "x"

# about tui
[tui]
theme = "dark"
"""
GEMINI = '{"theme":"x","mcpServers":{"g":{"url":"http://localhost:1/sse","headers":{"K":"$KEY"},"trust":true}}}'
ZED = """// Zed
{
  "context_servers": {
    "ext": { "source": "extension", "settings": {} },
    "z": { "source": "custom", "command": "zc", "args": [], "env": {} }
  },
}
"""
FILES = {
    ".claude.json": CLAUDE,
    ".cursor/mcp.json": CURSOR,
    ".config/Code/User/mcp.json": VSCODE,
    ".codex/config.toml": CODEX,
    ".gemini/settings.json": GEMINI,
    ".config/zed/settings.json": ZED,
}


@pytest.fixture
def installed(shell: Shell) -> Shell:
    for name, text in FILES.items():
        put(shell.home / name, text)
    return shell


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def own(shell: Shell) -> dict[str, Any]:
    return tomllib.loads((shell.home / ".config/toolreeve/toolreeve.toml").read_text())


def everything(shell: Shell) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in shell.home.rglob("*") if path.is_file() and "adopted" not in str(path)
    }


def test_every_client_can_be_named() -> None:
    assert tuple(CLIENTS) == NAMES


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
    assert rows["Claude Code"]["lost"] == ["local: it was for /p/one alone, and is for every folder here"]
    assert rows["Cursor"]["adopted"] == {"files": "fs", "github": "github-cursor"}
    assert rows["Cursor"]["lost"] == ["github: autoApprove allows nothing here: only the policy does"]
    assert rows["VS Code"]["lost"] == ["play: dev means nothing here and did not come along"]
    assert list(rows["VS Code"]["kept"]) == ["asks"]
    assert list(rows["Zed"]["kept"]) == ["ext"]
    assert done.json["tokens"] is None


def test_each_client_is_left_with_one_entry_of_ours_and_what_could_not_come(installed: Shell) -> None:
    installed.run("adopt", "--no-count")
    entry = {"command": ourselves()[0], "args": ["mcp", "--search"]}

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
    program, *rest = ourselves()

    assert Path(program).is_absolute()
    assert Path(program).is_file()
    assert rest[-1] == "mcp"
    assert Path(program).parent == Path(sys.executable).parent


def test_adopting_twice_changes_nothing(installed: Shell) -> None:
    installed.run("adopt", "--no-count")
    before = everything(installed)

    again = installed.run("adopt", "--no-count", "--json")

    assert everything(installed) == before
    assert (again.status, again.json["changed"], again.json["backups"]) == (0, [], None)


def test_a_dry_run_shows_the_difference_and_changes_nothing(installed: Shell) -> None:
    before = everything(installed)

    done = installed.run("adopt", "--no-count", "--dry-run")

    assert everything(installed) == before
    assert f"+++ {installed.home}/.codex/config.toml" in done.out
    assert "-[mcp_servers.docs]" in done.out
    assert "+[mcp_servers.toolreeve]" in done.out
    assert "would become one entry" in done.out


def test_a_dry_run_shows_no_secret_and_takes_nothing_else_out(shell: Shell) -> None:
    put(
        shell.home / ".claude.json",
        """{
  "primaryApiKey": "sk-ant-api03-0123456789abcdef",
  "mcpServers": {
    "db": {"command": "db", "args": ["--dsn", "postgres://u:hunter-two@h/db"], "env": {"API_TOKEN": "quo\\"te-hunter"}},
    "web": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer hunter-three", "X": "${KEY}"}}
  }
}
""",
    )

    done = shell.run("adopt", "--no-count", "--dry-run")

    for secret in ("hunter-two", "te-hunter", "hunter-three", "0123456789abcdef"):
        assert secret not in done.out + done.err
    assert '+args = ["--dsn", "postgres://u:[redacted]@h/db"]' in done.out
    assert '+headers = { Authorization = "Bearer [redacted]", X = "${KEY}" }' in done.out
    assert "it would be taken over as it is" in done.err
    shell.run("adopt", "--no-count")
    assert own(shell)["mcp_servers"]["db"]["env"] == {"API_TOKEN": 'quo"te-hunter'}


def test_undo_brings_every_byte_back(installed: Shell) -> None:
    put(installed.home / ".config/toolreeve/toolreeve.toml", "# mine\n[limits]\ntimeout = 5\n")
    before = everything(installed)
    installed.run("adopt", "--no-count")
    assert everything(installed) != before

    done = installed.run("adopt", "--no-count", "--undo")

    assert done.status == 0
    assert everything(installed) == before
    assert installed.run("adopt", "--no-count", "--undo").status == 2


def test_undo_keeps_what_was_changed_since(installed: Shell) -> None:
    installed.run("adopt", "--no-count")
    changed = installed.home / ".cursor/mcp.json"
    changed.write_bytes(
        changed.read_bytes().replace(b"\r\n\t}\r\n}", b',\r\n\t\t"new": {"command": "n"} // mine\r\n\t}\r\n}')
    )
    rewritten = installed.home / ".claude.json"
    rewritten.write_text(json.dumps({**json.loads(rewritten.read_text()), "numStartups": 4}, indent=2))
    user_file = installed.home / ".config/toolreeve/toolreeve.toml"
    user_file.write_text(user_file.read_text().replace('command = "zc"', 'command = "zc"\nallow = []') + "\n# mine\n")

    done = installed.run("adopt", "--undo")

    assert done.status == 0
    assert f"{changed}: taken back, and what was changed since is still there" in done.out
    assert f"{user_file}: 'z' was changed since and stays as it is now" in done.err
    files = json.loads(changed.read_text(encoding="utf-8-sig").replace("// mine", ""))["mcpServers"]
    assert list(files) == ["files", "github", "new"]
    assert "// mine" in changed.read_text()
    assert json.loads(rewritten.read_text()) == {**json.loads(CLAUDE), "numStartups": 4}
    assert user_file.read_text() == '[mcp_servers.z]\ncommand = "zc"\nallow = []\n\n# mine\n'
    assert installed.run("adopt", "--undo").status == 2


def test_undo_leaves_no_client_without_its_servers(installed: Shell) -> None:
    installed.run("adopt", "--no-count")
    changed = installed.home / ".cursor/mcp.json"
    broken = changed.read_bytes() + b"}"
    changed.write_bytes(broken)
    servers = own(installed)

    refused = installed.run("adopt", "--undo")

    assert refused.status == 1
    assert "was changed since, and is not valid JSON" in refused.out
    assert f"stays as it is, for {changed} still needs it" in refused.out
    assert changed.read_bytes() == broken
    assert own(installed) == servers
    assert (installed.home / ".claude.json").read_text() == CLAUDE
    assert installed.run("adopt", "--undo", "--force").status == 0
    assert changed.read_bytes().decode() == CURSOR
    assert not (installed.home / ".config/toolreeve/toolreeve.toml").exists()


COMMENTED = """{
    // what we use
    "mcpServers": {
        // reads the wiki
        "wiki": { "command": "wiki" /* not the old one */ }, // ask Ann
        // needs a key
        "near": { "command": "./near" }
        // "old": { "command": "old" }
    }
}
"""


def test_comments_go_with_the_servers_they_are_about(shell: Shell) -> None:
    path = put(shell.home / ".cursor/mcp.json", COMMENTED)

    shell.run("adopt", "--no-count")

    assert (shell.home / ".config/toolreeve/toolreeve.toml").read_text() == (
        '# reads the wiki\n# not the old one\n# ask Ann\n[mcp_servers.wiki]\ncommand = "wiki"\n'
    )
    assert [line.strip() for line in path.read_text().splitlines() if "//" in line] == [
        "// what we use",
        "// needs a key",
        '// "old": { "command": "old" }',
    ]
    shell.run("adopt", "--undo")
    assert path.read_text() == COMMENTED


def test_comments_about_a_server_that_is_there_already_join_it(shell: Shell) -> None:
    user_file = put(shell.home / ".config/toolreeve/toolreeve.toml", '# mine\n[mcp_servers.w]\ncommand = "wiki"\n')
    client = put(shell.home / ".cursor/mcp.json", COMMENTED)
    joined = '# mine\n# reads the wiki\n# not the old one\n# ask Ann\n[mcp_servers.w]\ncommand = "wiki"\n'

    shell.run("adopt", "--no-count")
    assert user_file.read_text() == joined
    client.write_text(COMMENTED)
    shell.run("adopt", "--no-count")
    assert user_file.read_text() == joined


def test_no_comment_of_a_workspace_becomes_a_setting(shell: Shell) -> None:
    attack = "/* x\n[policy]\nmode = 'bypass'\n */ // \r[policy]"
    put(shell.workspace / ".mcp.json", '{"mcpServers": {"a": {"command": "a"} ' + attack + "\n}}")

    assert shell.run("adopt", "--no-count", "--project").status == 0

    assert list(own(shell)) == ["mcp_servers"]
    assert list(own(shell)["mcp_servers"]) == ["a"]


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


def test_a_file_that_is_read_only_stays_and_so_do_its_servers(installed: Shell) -> None:
    path = installed.home / ".cursor/mcp.json"
    path.chmod(0o444)

    done = installed.run("adopt", "--no-count")

    assert done.status == 1
    assert "left alone: is read-only; chmod u+w" in done.out
    assert path.read_bytes().decode() == CURSOR
    assert "github-cursor" not in own(installed)["mcp_servers"]


def test_a_file_that_a_link_leads_to_is_changed_where_it_is(shell: Shell) -> None:
    target = put(shell.home / "dotfiles/mcp.json", COMMENTED)
    target.chmod(0o640)
    link = shell.home / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/mcp.json")

    shell.run("adopt", "--no-count")

    assert link.is_symlink()
    assert "toolreeve" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640
    shell.run("adopt", "--undo")
    assert (link.is_symlink(), target.read_text(), target.stat().st_mode & 0o777) == (True, COMMENTED, 0o640)


def test_a_file_that_two_clients_share_by_links_is_adopted_once(shell: Shell) -> None:
    shared = put(shell.home / "dotfiles/mcp.json", '{"mcpServers":{"a":{"command":"a"},"b":{"command":"b"}}}')
    before = shared.read_bytes()
    for name in (".cursor/mcp.json", ".gemini/settings.json"):
        (shell.home / name).parent.mkdir()
        (shell.home / name).symlink_to(shared)

    done = shell.run("adopt", "--no-count", "--json")

    assert done.status == 0
    assert [row["client"] for row in done.json["clients"]] == ["Cursor"]
    assert shell.run("adopt", "--undo").status == 0
    assert shared.read_bytes() == before


def test_a_workspace_cannot_make_a_users_own_file_look_like_its_own(shell: Shell) -> None:
    own_file = put(shell.home / ".cursor/mcp.json", '{"mcpServers":{"a":{"command":"a"}}}')
    (shell.workspace / ".mcp.json").symlink_to(own_file)

    done = shell.run("adopt", "--no-count", "--json")

    assert [(row["client"], row["adopted"]) for row in done.json["clients"]] == [("Cursor", {"a": "a"})]


def test_several_who_adopt_at_once_all_do(installed: Shell) -> None:
    before = everything(installed)
    program = [sys.executable, "-m", "toolreeve", "adopt", "--no-count", "--client"]
    running = [
        subprocess.Popen([*program, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for name in ("cursor", "gemini", "zed", "codex")
    ]
    said = [process.communicate(timeout=60)[0].decode() for process in running]

    assert [process.returncode for process in running] == [0, 0, 0, 0], said
    assert set(own(installed)["mcp_servers"]) == {"files", "github", "g", "z", "docs"}
    for _ in running:
        assert installed.run("adopt", "--undo").status == 0
    assert {path: text for path, text in everything(installed).items() if "/state/" not in path} == before


def test_a_folder_that_cannot_be_made_is_told_and_changes_nothing(shell: Shell) -> None:
    put(shell.home / ".config/Claude/claude_desktop_config.json", '{"mcpServers": {"a": {"command": "a"}}}')
    put(shell.home / "toolreeve", "in the way")

    done = shell.run("adopt", "--no-count")

    assert done.status == 2
    assert "Claude Desktop needs a folder to work in, and it cannot be made: File exists" in done.err
    assert "toolreeve.toml" not in str(everything(shell))


def test_a_file_that_cannot_be_changed_has_one_row_and_gives_no_servers(shell: Shell) -> None:
    put(shell.home / ".codex/config.toml", 'mcp_servers = { a = { command = "a" } }\n')

    done = shell.run("adopt", "--no-count", "--json")

    assert done.status == 1
    assert [row["adopted"] for row in done.json["clients"]] == [{}]
    assert "cannot be changed safely; write servers as tables" in done.json["clients"][0]["problem"]
    assert not (shell.home / ".config/toolreeve/toolreeve.toml").exists()


def test_servers_of_codex_are_found_in_either_kind_of_table(shell: Shell) -> None:
    text = '[mcp_servers.a]\ncommand = "a"\n\n[mcp_servers]\nb = { command = "b" } # inline\n'
    path = put(shell.home / ".codex/config.toml", text)

    done = shell.run("adopt", "--no-count", "--json")

    assert [row["adopted"] for row in done.json["clients"]] == [{"a": "a", "b": "b"}]
    assert list(tomllib.loads(path.read_text())["mcp_servers"]) == ["toolreeve"]


def test_half_a_character_is_not_taken_over(shell: Shell) -> None:
    path = put(
        shell.home / ".claude.json", r'{"projects": {"/\ud800": {"mcpServers": {"a": {"url": "http://localhost/"}}}}}'
    )
    before = path.read_bytes()

    done = shell.run("adopt", "--no-count")

    assert "it holds text that is not Unicode" in done.err
    assert path.read_bytes() == before


def test_what_the_user_wrote_stays_as_it_was_written(installed: Shell) -> None:
    mine = '# mine\n[mcp_servers.fs]   # my own\ncommand = "mine"\n'
    path = put(installed.home / ".config/toolreeve/toolreeve.toml", mine)

    installed.run("adopt", "--no-count", "--client", "claude-code")

    assert path.read_text().startswith(mine)
    assert own(installed)["mcp_servers"]["fs"] == {"command": "mine"}
    assert own(installed)["mcp_servers"]["fs-claude-code"]["command"] == "npx"


def test_one_client_can_be_chosen(installed: Shell) -> None:
    installed.run("adopt", "--no-count", "--client", "codex", "--client", "zed")

    assert list(own(installed)["mcp_servers"]) == ["docs", "z"]
    assert (installed.home / ".claude.json").read_text() == CLAUDE


def test_a_malformed_file_is_told_with_its_line_and_stops_no_other(installed: Shell) -> None:
    bad = put(installed.home / ".config/Claude/claude_desktop_config.json", '{\n  "mcpServers": {\n    oops\n  }\n}\n')

    done = installed.run("adopt", "--no-count")

    assert done.status == 1
    assert "left alone: line 3: is not valid JSON" in done.out
    assert "oops" in bad.read_text()
    assert "docs" in own(installed)["mcp_servers"]


def test_a_file_that_would_hold_us_up_is_left_alone(shell: Shell) -> None:
    (shell.workspace / ".vscode").mkdir()
    os.mkfifo(shell.workspace / ".vscode/mcp.json")

    assert "left alone: is not an ordinary small file" in shell.run("adopt", "--no-count").out


@pytest.mark.parametrize("content", ["", "\ufeff", "// nothing\n", "{}", '{"mcpServers": {}}', "null"])
def test_a_client_without_servers_is_left_as_it_is(shell: Shell, content: str) -> None:
    path = put(shell.home / ".cursor/mcp.json", content)

    done = shell.run("adopt", "--no-count")

    assert done.status == 0
    assert "nothing to do" in done.out
    assert path.read_text() == content
    assert not (shell.home / ".config/toolreeve").exists()


def test_no_client_at_all_is_said(shell: Shell) -> None:
    done = shell.run("adopt", "--no-count")

    assert (done.status, done.out) == (0, "no client's file was found\n")


def test_what_came_with_a_workspace_is_adopted_only_when_asked_for(shell: Shell) -> None:
    evil = put(shell.workspace / ".mcp.json", '{"mcpServers": {"evil": {"command": "./evil.sh"}}}')

    left = shell.run("adopt", "--no-count")

    assert "it came with the workspace; --project adopts it" in left.err
    assert "evil.sh" in evil.read_text()
    assert not (shell.home / ".config/toolreeve").exists()

    shell.run("adopt", "--no-count", "--project")

    assert own(shell)["mcp_servers"] == {"evil": {"command": f"{shell.workspace}/evil.sh", "cwd": str(shell.workspace)}}
    assert list(json.loads(evil.read_text())["mcpServers"]) == ["toolreeve"]
    assert "not trusted" not in shell.run("config", "path").err


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "./here"}, "relative to wherever the client starts"),
        ({"command": "x", "sandboxEnabled": True}, "confined in the client's own way"),
        ({"command": "x", "env": {"A": "${command:pick}"}}, "nothing that can be looked up"),
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
        "would not start 'toolreeve': mcp.allowed does not name it; change that and run it again"
    )
    assert path.read_text() == text
    assert not (shell.home / ".config/toolreeve/toolreeve.toml").exists()


def test_a_list_of_tools_that_lets_nothing_through_still_does_not(shell: Shell) -> None:
    put(shell.home / ".codex/config.toml", '[mcp_servers.a]\ncommand = "a"\nenabled_tools = []\n')

    shell.run("adopt", "--no-count")

    assert own(shell)["mcp_servers"]["a"] == {"command": "a", "allow": []}


def test_credentials_that_come_along_are_for_their_owner_only(installed: Shell) -> None:
    path = put(installed.home / ".config/toolreeve/toolreeve.toml", "")
    path.chmod(0o644)

    installed.run("adopt", "--no-count")

    assert path.stat().st_mode & 0o077 == 0
    backups = [each for each in installed.home.rglob("adopted/*/*") if each.is_file()]
    assert backups
    assert all(each.stat().st_mode & 0o077 == 0 for each in backups)


def test_searching_instead_of_listing_is_written_into_the_entry(installed: Shell) -> None:
    installed.run("adopt", "--no-count", "--client", "gemini")
    installed.run("adopt", "--no-count", "--no-search", "--client", "codex")

    entry = json.loads((installed.home / ".gemini/settings.json").read_text())["mcpServers"]["toolreeve"]
    assert entry["args"] == ["mcp", "--search"]
    assert 'args = ["mcp"]' in (installed.home / ".codex/config.toml").read_text()


def test_a_server_is_the_same_whether_or_not_its_entry_says_how_it_is_reached(shell: Shell) -> None:
    entry = {"command": "npx", "args": ["fs"]}
    put(shell.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"fs": entry}}))
    put(shell.home / ".claude.json", json.dumps({"mcpServers": {"files": {"type": "stdio", **entry}}}))

    shell.run("adopt", "--no-count")

    assert list(own(shell)["mcp_servers"]) == ["files"]


def test_nothing_is_claimed_about_tokens_that_was_not_measured(installed: Shell) -> None:
    done = installed.run("adopt", "--no-count")

    assert "was not measured" in done.err
    assert "→" not in done.out


def test_tokens_are_measured_on_the_lists_of_servers_that_answer(shell: Shell) -> None:
    server = put(shell.home / "server.py", SERVER)
    good, away = {"command": sys.executable, "args": [str(server)]}, {"command": "/none/such"}
    put(shell.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"good": good, "away": away}}))
    put(shell.home / ".claude.json", json.dumps({"mcpServers": {"good": good}}))
    put(shell.home / ".gemini/settings.json", json.dumps({"mcpServers": {"away": away}}))

    done = shell.spawn("adopt")

    told = {line.split("  ")[0]: line for line in done.out.splitlines()}
    before, after = (int(number) for number in re.search(r"(\d+) → (\d+)", told["Claude Code"]).groups())  # type: ignore[union-attr]
    assert before > 1000 > after
    assert f" {before} → {after}, 1 not counted " in told["Cursor"]
    assert " not counted " in told["Gemini CLI"]
    assert "→" not in told["Gemini CLI"]
    assert f" {2 * before} → {2 * after}" in told["all that was counted"]
    assert "'away' could not be listed and is not counted" in done.err


def test_a_dry_run_starts_no_server(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"a": {"command": "touch", "args": ["/none/x"]}}}))

    done = shell.run("adopt", "--dry-run", "--json")

    assert done.json["tokens"] is None


SERVER = """
import json, sys

TOOL = {"name": "t", "description": "long " * 1000, "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked.get("method") == "tools/list":
        result = {"tools": [TOOL]}
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


DESKTOP = ".config/Claude/claude_desktop_config.json"


def desktop(shell: Shell) -> Any:
    return json.loads((shell.home / DESKTOP).read_text())["mcpServers"]["toolreeve"]["args"]


def test_a_client_that_starts_servers_in_no_folder_is_given_one_of_its_own(shell: Shell) -> None:
    put(shell.home / DESKTOP, '{"mcpServers": {"s": {"command": "x"}}}')

    dry = shell.run("adopt", "--no-count", "--dry-run")
    assert not (shell.home / "toolreeve").exists()
    adopted = shell.run("adopt", "--no-count")

    folder = shell.home / "toolreeve"
    assert desktop(shell)[-4:] == ["mcp", "--search", "--workspace", str(folder)]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(f"a folder of their own: {folder}" in printed.err for printed in (dry, adopted))


def test_a_folder_that_is_named_is_taken_instead(shell: Shell, tmp_path: Path) -> None:
    put(shell.home / DESKTOP, '{"mcpServers": {"s": {"command": "x"}}}')

    shell.run("adopt", "--no-count", "--workspace", str(tmp_path))

    assert desktop(shell)[-1] == str(tmp_path)
    assert not (shell.home / "toolreeve").exists()


def test_a_workspace_that_the_user_set_for_all_needs_no_word(shell: Shell) -> None:
    put(shell.home / DESKTOP, '{"mcpServers": {"s": {"command": "x"}}}')
    put(shell.home / ".config/toolreeve/toolreeve.toml", f'[workspace]\ndir = "{shell.workspace}"\n')

    shell.run("adopt", "--no-count")

    assert desktop(shell)[-1] == "--search"


def test_servers_of_the_workspace_are_not_started_to_count_them(shell: Shell) -> None:
    started = shell.home / "started"
    entry = {"command": "touch", "args": [str(started)]}
    put(shell.workspace / ".mcp.json", json.dumps({"mcpServers": {"evil": entry}}))

    done = shell.spawn("adopt", "--project", "--count")

    assert "one entry now" in done.out
    assert not started.exists()


def test_what_could_not_be_written_is_not_claimed(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", '{"mcpServers": {"a": {"command": "a"}}}')
    (shell.home / ".config").mkdir(exist_ok=True)
    (shell.home / ".config/toolreeve").write_text("in the way")

    done = shell.run("adopt", "--no-count")

    assert done.status != 0
    assert "one entry now" not in done.out
