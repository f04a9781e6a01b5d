"""Where do configuration and state live? The XDG directories of the user, and the workspace."""

from collections.abc import Mapping
from pathlib import Path

FILE = "toolreeve.toml"
POLICY_FILE = "policy.yaml"
SECRETS_FILE = "secrets.toml"
DATABASE = "toolreeve.db"
SHARED_FILE = ".mcp.json"
"""Where a project keeps servers for every client."""

CLIENT_FILES = (
    SHARED_FILE,
    ".claude.json",
    ".codex/config.toml",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".vscode/mcp.json",
    ".zed/settings.json",
)
"""Files of a folder that tell some client which programs to start."""


def config_home(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_CONFIG_HOME", ".config") / "toolreeve"


def state_home(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_STATE_HOME", ".local/state") / "toolreeve"


def home(environ: Mapping[str, str]) -> str:
    named = environ.get("HOME", "")
    return named if named.startswith("/") else str(Path.home())


def _base(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    """A relative XDG directory is to be ignored, says their specification."""
    named = environ.get(variable, "")
    return Path(named) if named.startswith("/") else Path(home(environ)) / below_home


def expand(path: str, *, base: Path, environ: Mapping[str, str]) -> str:
    """The absolute path that a person meant, `~` included and links followed."""
    if path == "~" or path.startswith("~/"):
        path = home(environ) + path[1:]
    return str((base / path).resolve())
