"""Which server of a client is ours: by its configuration, not by its name."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolreeve.hook.own_server import is_own_tool

OURS = {"command": "/opt/venv/bin/toolreeve", "args": ["mcp"]}
EVIL = {"command": "node", "args": ["evil.js"]}


class Files:
    """The home and workspace of a client's user."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.workspace = place / "home/work/project"
        self.workspace.mkdir(parents=True)

    def put(self, name: str, servers: dict[str, Any], *, key: str = "mcpServers", below: Path | None = None) -> None:
        path = (below or self.home) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({key: servers}))

    def owns(self, tool: str = "mcp__toolreeve__bash", client: str = "claude-code", cwd: str = ".") -> bool:
        return is_own_tool(client, tool, home=str(self.home), workspace=str(self.workspace), cwd=cwd)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_the_server_that_the_users_own_file_starts_is_ours(files: Files) -> None:
    assert not files.owns(), "nothing says so"

    files.put(".claude.json", {"toolreeve": OURS, "github": EVIL})
    files.put(".gemini/settings.json", {"toolreeve": {"command": "uvx", "args": ["toolreeve", "mcp"]}})
    (files.home / ".codex").mkdir()
    (files.home / ".codex/config.toml").write_text(
        '[mcp_servers.toolreeve]\ncommand = "/usr/bin/python3"\nargs = ["-P", "-m", "toolreeve", "mcp"]\n'
    )

    assert files.owns()
    assert files.owns("mcp__toolreeve__github__create_issue"), "a server behind ours"
    assert files.owns("mcp_toolreeve_bash", "gemini")
    assert files.owns("mcp__toolreeve__bash", "codex")
    assert not files.owns("mcp__github__bash")


@pytest.mark.parametrize(
    "servers",
    [
        {"toolreeve": EVIL},
        {"toolreeve": OURS, "toolreeve__evil": EVIL},
        {"toolreeve": OURS, "toolreeve  evil": EVIL},
        {"toolreeve": OURS, "toolreeve.": EVIL},
        {"toolreeve": {"command": "./toolreeve", "args": ["mcp"]}},
        {"toolreeve": {"command": "bin/toolreeve", "args": ["mcp"]}},
        {"toolreeve": {"command": "node", "args": ["evil.js", "toolreeve", "mcp"]}},
        {"toolreeve": {"command": "python", "args": ["evil.py", "-m", "toolreeve", "mcp"]}},
        {"toolreeve": {"url": "https://evil.example/toolreeve/mcp"}},
        {"toolreeve": {"type": "builtin"}},
        {"toolreeve": "toolreeve mcp"},
        {"toolreeve": None},
    ],
)
def test_a_server_with_a_lying_name_is_not_ours(files: Files, servers: dict[str, Any]) -> None:
    files.put(".claude.json", servers)

    assert not files.owns()


@pytest.mark.parametrize("name", ["toolreeve", "toolreeve__x", "toolreeve x"])
@pytest.mark.parametrize("below", ["work/project", "work", "work/project/inner"])
def test_no_file_of_a_project_defines_what_could_be_taken_for_ours(files: Files, name: str, below: str) -> None:
    files.put(".claude.json", {"toolreeve": OURS})
    files.put(".mcp.json", {name: OURS}, below=files.home / below)
    (files.workspace / "inner").mkdir(exist_ok=True)

    assert not files.owns(cwd="inner")


def test_a_project_of_the_users_own_file_and_an_extension_count_too(files: Files) -> None:
    files.put(".claude.json", {str(files.workspace): {"mcpServers": {"toolreeve": EVIL}}}, key="projects")
    files.put(".gemini/settings.json", {"toolreeve": OURS})
    files.put(".gemini/extensions/x/gemini-extension.json", {"toolreeve_x": EVIL})

    assert not files.owns()
    assert not files.owns("mcp_toolreeve_x_run", "gemini")


def test_what_cannot_be_read_is_not_ours(files: Files) -> None:
    files.put(".claude.json", {"toolreeve": OURS})
    (files.workspace / ".mcp.json").write_text("{")

    assert not files.owns()
