"""A home in which clients are installed: their files as they write them, and what stands there afterwards."""

import tomllib
from pathlib import Path
from typing import Any

from tests.cli.conftest import Shell

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
