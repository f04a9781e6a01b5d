"""File names and XDG directories of configuration and state."""

from collections.abc import Mapping
from pathlib import Path

FILE = "toolreeve.toml"
POLICY_FILE = "policy.yaml"
APPROVAL_FILES = {"auto_approval_file": "auto_approval_policies.yaml", "governors_file": "governors.yaml"}
SECRETS_FILE = "secrets.toml"
DATABASE = "toolreeve.db"
SHARED_FILE = ".mcp.json"
"""A project's MCP servers, shared by all clients."""

CLIENT_FILES = (
    SHARED_FILE,
    ".claude.json",
    ".codex/config.toml",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".vscode/mcp.json",
    ".zed/settings.json",
)
"""Files of a folder that make some client start programs."""


def config_home(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_CONFIG_HOME", ".config") / "toolreeve"


def state_home(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_STATE_HOME", ".local/state") / "toolreeve"


def data_home(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_DATA_HOME", ".local/share") / "toolreeve"


def home(environ: Mapping[str, str]) -> str:
    named = environ.get("HOME", "")
    return named if named.startswith("/") else str(Path.home())


def _base(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    """Relative XDG directories are ignored, as their specification demands."""
    named = environ.get(variable, "")
    return Path(named) if named.startswith("/") else Path(home(environ)) / below_home


def expand(path: str, *, base: Path, environ: Mapping[str, str]) -> str:
    """The absolute path, with `~` expanded and links resolved."""
    if path == "~" or path.startswith("~/"):
        path = home(environ) + path[1:]
    return str((base / path).resolve())
