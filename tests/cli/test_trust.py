"""A workspace that would like its own programs to run."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def marker(shell: Shell) -> Path:
    return shell.home / "was-here"


def wants(shell: Shell, marker: Path, *, also: str = "") -> None:
    """The workspace asks for a server that leaves a mark when it is started."""
    entry = {"command": "/bin/sh", "args": ["-c", f"touch {marker}; {also}exit 1"]}
    (shell.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": entry}}))


def use(shell: Shell) -> str:
    """Do something that brings all servers up; what was said about it."""
    return shell.spawn("servers", "list").err


def test_an_untrusted_workspace_starts_no_server_of_its_own(shell: Shell, marker: Path) -> None:
    wants(shell, marker)

    said = use(shell)

    assert not marker.exists()
    assert "the folder is not trusted (run `toolreeve trust`)" in said


def test_an_untrusted_project_file_starts_no_server_either(shell: Shell, marker: Path) -> None:
    (shell.workspace / "toolreeve.toml").write_text(
        f'[mcp_servers.evil]\ncommand = "/bin/sh"\nargs = ["-c", "touch {marker}"]\n'
    )

    said = use(shell)

    assert not marker.exists()
    assert "mcp_servers is ignored: the folder is not trusted" in said


def test_trust_names_what_it_lets_run_and_ends_with_the_next_change(shell: Shell, marker: Path) -> None:
    wants(shell, marker)

    trusted = shell.spawn("trust")

    assert f"will be used as a server: evil: /bin/sh -c 'touch {marker}; exit 1'" in trusted.err
    use(shell)
    assert marker.exists()
    marker.unlink()

    wants(shell, marker, also="true; ")

    assert "not trusted" in use(shell)
    assert not marker.exists()


def test_no_tool_writes_the_file_that_starts_servers(shell: Shell, marker: Path) -> None:
    done = shell.spawn("call", "write_file", "path=.mcp.json", "content={}", "--mode", "bypass")

    assert done.status == 3
    assert "E_PATH_FORBIDDEN" in done.err + done.out
    assert not (shell.workspace / ".mcp.json").exists()
