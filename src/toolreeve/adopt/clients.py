"""Which clients do we know, and where do they keep their servers? Facts about other programs, and nothing else.

A file that came with a workspace is not its user's word: such places are marked, and adopted only when asked for.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolreeve.config.xdg import home

KeyPath = tuple[str, ...]
EACH = "*"
"""Stands for every key at its place in a section's path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLocation:
    """A file that a client reads. `shared`: it lies in the workspace, whose authors may be others."""

    path: Path
    shared: bool = False


Paths = Callable[[Path, Path, str], tuple[ConfigLocation, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClient:
    """`sections` are where in its files servers stand, the first being where ours goes. `url_kind` is what a bare
    `url` means to it, `bare_variables` whether `$NAME` is a variable, `entry` what it wants beside command and args.
    `has_folder` is off where it starts its servers in `/`, having no folder of its own to work in. `allowed` and
    `excluded` are where its files list the only servers that it starts, and those that it does not."""

    name: str
    title: str
    paths: Paths
    sections: tuple[KeyPath, ...] = (("mcpServers",),)
    format: Literal["json", "toml"] = "json"
    url_kind: Literal["http", "sse"] = "http"
    bare_variables: bool = False
    has_folder: bool = True
    allowed: tuple[KeyPath, ...] = ()
    excluded: tuple[KeyPath, ...] = ()
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
            entry={"type": "stdio"},
        ),
        KnownClient(name="claude-desktop", title="Claude Desktop", paths=_claude_desktop, has_folder=False, entry={}),
        KnownClient(
            name="cursor", title="Cursor", paths=_own_and_shared(".cursor/mcp.json", ".cursor/mcp.json"), entry={}
        ),
        KnownClient(name="vscode", title="VS Code", paths=_vs_code, sections=(("servers",),), entry={"type": "stdio"}),
        KnownClient(
            name="codex",
            title="Codex",
            paths=_own(".codex/config.toml"),
            sections=(("mcp_servers",),),
            format="toml",
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
            entry={},
        ),
        KnownClient(
            name="zed",
            title="Zed",
            paths=_own_and_shared(".config/zed/settings.json", ".zed/settings.json"),
            sections=(("context_servers",),),
            entry={"source": "custom"},
        ),
    )
}


def places_of(
    clients: Mapping[str, KnownClient], environ: Mapping[str, str], workspace: Path, platform: str
) -> Iterator[tuple[KnownClient, ConfigLocation]]:
    """Every file once, whichever links lead to it. One that is its user's own is that and nothing else, also where the
    workspace is the home or links to it."""
    found = [(client, place) for client in clients.values() for place in client.places(environ, workspace, platform)]
    own = {_target(place.path) for _, place in found if not place.shared}
    seen: set[str] = set()
    for client, place in found:
        target = _target(place.path)
        if target not in seen and not (place.shared and target in own):
            seen.add(target)
            yield client, place


def _target(path: Path) -> str:
    """Where links lead, and no error where they lead round in a circle: whoever reads the file tells that."""
    return os.path.realpath(path)
