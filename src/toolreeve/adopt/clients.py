"""Known MCP clients: where their configuration files are, and their format.

A file that came with a workspace was not written by the user: such files are marked, and adopted only on request.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolreeve.config.xdg import home

KeyPath = tuple[str, ...]
EACH = "*"
"""Matches every key at its position in a section's path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLocation:
    """A file that a client reads. `shared`: it is in the workspace, which others may have written."""

    path: Path
    shared: bool = False


Paths = Callable[[Path, Path, str], tuple[ConfigLocation, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClient:
    """`sections` are the paths of its servers within its files; ours goes into the first. `url_kind` is what a plain
    `url` means, `bare_variables` whether `$NAME` is a variable, `entry` what an entry needs besides command and args.
    `has_folder` is False if it starts its servers in `/`. `allowed` and `excluded` are the paths of the lists of the
    only servers it starts, and of those it does not. `command_list` says that `command` holds the arguments, too.
    `own_tools` says how to switch off the client's own shell and file tools, which do not pass through us. The servers
    of the sections `by_hand` are not moved; `how_by_hand` says what the user can do."""

    name: str
    title: str
    paths: Paths
    sections: tuple[KeyPath, ...] = (("mcpServers",),)
    format: Literal["json", "toml", "yaml"] = "json"
    url_kind: Literal["http", "sse"] = "http"
    bare_variables: bool = False
    has_folder: bool = True
    allowed: tuple[KeyPath, ...] = ()
    excluded: tuple[KeyPath, ...] = ()
    command_list: bool = False
    own_tools: str = ""
    by_hand: tuple[KeyPath, ...] = ()
    how_by_hand: str = ""
    entry: Mapping[str, Any]

    def places(self, environ: Mapping[str, str], workspace: Path, platform: str) -> tuple[ConfigLocation, ...]:
        return self.paths(Path(home(environ)), workspace, platform)


def _config(user: Path, platform: str) -> Path:
    return user / ("Library/Application Support" if platform == "darwin" else ".config")


def _own(*names: str) -> Paths:
    return lambda user, _workspace, _platform: tuple(ConfigLocation(path=user / name) for name in names)


def _own_and_shared(own: str, shared: str) -> Paths:
    return lambda user, workspace, _platform: (
        ConfigLocation(path=user / own),
        ConfigLocation(path=workspace / shared, shared=True),
    )


def _claude_desktop(user: Path, _workspace: Path, platform: str) -> tuple[ConfigLocation, ...]:
    return (ConfigLocation(path=_config(user, platform) / "Claude/claude_desktop_config.json"),)


def _vs_code(user: Path, workspace: Path, platform: str) -> tuple[ConfigLocation, ...]:
    editors = ("Code", "Code - Insiders", "VSCodium")
    own = (ConfigLocation(path=_config(user, platform) / editor / "User/mcp.json") for editor in editors)
    return (*own, ConfigLocation(path=workspace / ".vscode/mcp.json", shared=True))


CLIENTS: Mapping[str, KnownClient] = {
    client.name: client
    for client in (
        KnownClient(
            name="claude-code",
            title="Claude Code",
            paths=_own_and_shared(".claude.json", ".mcp.json"),
            sections=(("mcpServers",), ("projects", EACH, "mcpServers")),
            own_tools='add "permissions": {"deny": ["Bash", "Edit", "Write", "NotebookEdit", "WebFetch"]} to'
            " ~/.claude/settings.json",
            entry={"type": "stdio"},
        ),
        KnownClient(name="claude-desktop", title="Claude Desktop", paths=_claude_desktop, has_folder=False, entry={}),
        KnownClient(
            name="cursor",
            title="Cursor",
            paths=_own_and_shared(".cursor/mcp.json", ".cursor/mcp.json"),
            own_tools="use its Ask mode, which only reads; in its CLI, add"
            ' "permissions": {"deny": ["Shell(**)", "Write(**)"]} to ~/.cursor/cli-config.json (not verified)',
            entry={},
        ),
        KnownClient(
            name="vscode",
            title="VS Code",
            paths=_vs_code,
            sections=(("servers",),),
            own_tools="deselect its execute and edit tools under Configure Tools in the chat, or use a custom agent"
            " whose tools leave them out",
            entry={"type": "stdio"},
        ),
        KnownClient(
            name="codex",
            title="Codex",
            paths=_own(".codex/config.toml"),
            sections=(("mcp_servers",),),
            format="toml",
            own_tools='set features.shell_tool = false and sandbox_mode = "read-only" in ~/.codex/config.toml; its'
            " patch tool stays, and asks before it writes",
            entry={},
        ),
        KnownClient(
            name="gemini",
            title="Gemini CLI",
            paths=_own_and_shared(".gemini/settings.json", ".gemini/settings.json"),
            url_kind="sse",
            bare_variables=True,
            allowed=(("mcp", "allowed"), ("allowMCPServers",)),
            excluded=(("mcp", "excluded"), ("excludeMCPServers",)),
            own_tools="deny run_shell_command, write_file and replace with a rule in ~/.gemini/policies/toolreeve.toml",
            entry={},
        ),
        KnownClient(
            name="zed",
            title="Zed",
            paths=_own_and_shared(".config/zed/settings.json", ".zed/settings.json"),
            sections=(("context_servers",),),
            own_tools="switch terminal, edit_file and its other writing tools off in the agent profile, or use the"
            " profile Ask",
            entry={"source": "custom"},
        ),
        KnownClient(
            name="windsurf",
            title="Windsurf",
            paths=_own(".codeium/windsurf/mcp_config.json"),
            own_tools="no switch is known to us; see its documentation",
            entry={},
        ),
        KnownClient(
            name="qwen",
            title="Qwen Code",
            paths=_own_and_shared(".qwen/settings.json", ".qwen/settings.json"),
            url_kind="sse",
            bare_variables=True,
            allowed=(("mcp", "allowed"), ("allowMCPServers",)),
            excluded=(("mcp", "excluded"), ("excludeMCPServers",)),
            own_tools='add "permissions": {"deny": ["Bash", "Edit", "monitor"]} to its settings.json',
            entry={},
        ),
        KnownClient(
            name="opencode",
            title="opencode",
            paths=_own_and_shared(".config/opencode/opencode.json", "opencode.json"),
            sections=(("mcp",),),
            command_list=True,
            own_tools='add "permission": {"bash": "deny", "edit": "deny"} to ~/.config/opencode/opencode.json',
            by_hand=(("mcp", "servers"),),
            how_by_hand="the format of opencode 2 is not edited: move it to your toolreeve.toml, and add a server"
            " whose command is `toolreeve mcp`",
            entry={"type": "local", "enabled": True},
        ),
        KnownClient(
            name="copilot",
            title="Copilot CLI",
            paths=_own(".copilot/mcp-config.json"),
            own_tools="start it with --deny-tool=shell --deny-tool=write",
            entry={"type": "local", "tools": ["*"]},
        ),
        KnownClient(
            name="goose",
            title="goose",
            paths=_own(".config/goose/config.yaml"),
            sections=(("extensions",),),
            format="yaml",
            own_tools="switch the extension developer off: goose configure, Toggle Extensions",
            entry={"name": "toolreeve", "type": "stdio", "enabled": True, "timeout": 300},
        ),
    )
}


def locate_files(
    clients: Mapping[str, KnownClient], environ: Mapping[str, str], workspace: Path, platform: str
) -> Iterator[tuple[KnownClient, ConfigLocation]]:
    """Every file once, whichever links lead to it. A file of the user never counts as shared, even if the workspace is
    the home or links to it."""
    found = [(client, place) for client in clients.values() for place in client.places(environ, workspace, platform)]
    own = {_target(place.path) for _, place in found if not place.shared}
    seen: set[str] = set()
    for client, place in found:
        target = _target(place.path)
        if target not in seen and not (place.shared and target in own):
            seen.add(target)
            yield client, place


def _target(path: Path) -> str:
    """The link target; a link loop is no error here, but when the file is read."""
    return os.path.realpath(path)
