"""The folder in which servers will work, and what came with a folder without being asked for."""

import json
from pathlib import Path
from typing import Any

from tests.cli.adopt.homes import everything, own, put
from tests.cli.conftest import Shell

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
    assert all(f"get their own workspace: {folder}" in printed.err for printed in (dry, adopted))


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


def test_a_folder_that_cannot_be_created_is_reported_and_changes_nothing(shell: Shell) -> None:
    put(shell.home / ".config/Claude/claude_desktop_config.json", '{"mcpServers": {"a": {"command": "a"}}}')
    put(shell.home / "toolreeve", "in the way")

    done = shell.run("adopt", "--no-count")

    assert done.status == 2
    assert "the workspace of Claude Desktop cannot be created: File exists" in done.err
    assert "toolreeve.toml" not in str(everything(shell))


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


def test_a_workspace_cannot_make_a_users_own_file_look_like_its_own(shell: Shell) -> None:
    own_file = put(shell.home / ".cursor/mcp.json", '{"mcpServers":{"a":{"command":"a"}}}')
    (shell.workspace / ".mcp.json").symlink_to(own_file)

    done = shell.run("adopt", "--no-count", "--json")

    assert [(row["client"], row["adopted"]) for row in done.json["clients"]] == [("Cursor", {"a": "a"})]
