"""Files that are read-only, shared, malformed or in the way, and several who change them at once."""

import os
import subprocess
import sys

from tests.cli.adopt.homes import COMMENTED, CURSOR, everything, own, put
from tests.cli.conftest import Shell


def test_a_file_that_is_read_only_stays_and_so_do_its_servers(installed: Shell) -> None:
    path = installed.home / ".cursor/mcp.json"
    path.chmod(0o444)

    done = installed.run("adopt", "--no-count")

    assert done.status == 1
    assert "not changed: is read-only; chmod u+w" in done.out
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


def test_a_file_that_cannot_be_changed_has_one_row_and_gives_no_servers(shell: Shell) -> None:
    put(shell.home / ".codex/config.toml", 'mcp_servers = { a = { command = "a" } }\n')

    done = shell.run("adopt", "--no-count", "--json")

    assert done.status == 1
    assert [row["adopted"] for row in done.json["clients"]] == [{}]
    assert "cannot be changed safely; write servers as tables" in done.json["clients"][0]["problem"]
    assert not (shell.home / ".config/toolreeve/toolreeve.toml").exists()


def test_half_a_character_is_not_taken_over(shell: Shell) -> None:
    path = put(
        shell.home / ".claude.json", r'{"projects": {"/\ud800": {"mcpServers": {"a": {"url": "http://localhost/"}}}}}'
    )
    before = path.read_bytes()

    done = shell.run("adopt", "--no-count")

    assert "it contains text that is not valid Unicode" in done.err
    assert path.read_bytes() == before


def test_a_malformed_file_is_reported_with_its_line_and_stops_no_other(installed: Shell) -> None:
    bad = put(installed.home / ".config/Claude/claude_desktop_config.json", '{\n  "mcpServers": {\n    oops\n  }\n}\n')

    done = installed.run("adopt", "--no-count")

    assert done.status == 1
    assert "not changed: line 3: is not valid JSON" in done.out
    assert "oops" in bad.read_text()
    assert "docs" in own(installed)["mcp_servers"]


def test_a_file_that_would_hold_us_up_is_left_alone(shell: Shell) -> None:
    (shell.workspace / ".vscode").mkdir()
    os.mkfifo(shell.workspace / ".vscode/mcp.json")

    assert "not changed: is not a regular file" in shell.run("adopt", "--no-count").out


def test_credentials_that_come_along_are_for_their_owner_only(installed: Shell) -> None:
    path = put(installed.home / ".config/toolreeve/toolreeve.toml", "")
    path.chmod(0o644)

    installed.run("adopt", "--no-count")

    assert path.stat().st_mode & 0o077 == 0
    backups = [each for each in installed.home.rglob("adopted/*/*") if each.is_file()]
    assert backups
    assert all(each.stat().st_mode & 0o077 == 0 for each in backups)


def test_what_could_not_be_written_is_not_claimed(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", '{"mcpServers": {"a": {"command": "a"}}}')
    (shell.home / ".config").mkdir(exist_ok=True)
    (shell.home / ".config/toolreeve").write_text("in the way")

    done = shell.run("adopt", "--no-count")

    assert done.status != 0
    assert "one entry now" not in done.out
