"""Undo restores every byte, except later edits."""

import json

from tests.cli.adopt.homes import CLAUDE, CURSOR, everything, own, put
from tests.cli.conftest import Shell


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
    assert f"{changed}: restored, later changes kept" in done.out
    assert f"{user_file}: 'z' was changed since and is kept as it is now" in done.err
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
    assert "edited since, and is not valid JSON" in refused.out
    assert f"not changed: {changed} still needs it" in refused.out
    assert changed.read_bytes() == broken
    assert own(installed) == servers
    assert (installed.home / ".claude.json").read_text() == CLAUDE
    assert installed.run("adopt", "--undo", "--force").status == 0
    assert changed.read_bytes().decode() == CURSOR
    assert not (installed.home / ".config/toolreeve/toolreeve.toml").exists()
