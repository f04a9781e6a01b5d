"""Tells our own MCP tools from those of a lying server.

A name proves nothing: any server can be called `toolreeve`. Ours is the one that the user's own file starts; no file of
the workspace may define one that the client could take for it. Whatever cannot be told is not ours, and is judged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolreeve.core.errors import ConfigError

OURS = "toolreeve"
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]")
"""Clients put `_` in place of these when they make the name of a tool."""

_LAUNCH = re.compile(r"(?:|python[\d.]* (?:-P )?-m |uvx |uv tool run |pipx run )toolreeve(?: |$)")


class _Servers(NamedTuple):
    """`prefix` is that of our tools' names. `own` are the user's files, with the tables of servers in them; `foreign`
    are patterns of files that others may have written."""

    prefix: str
    own: str
    tables: Sequence[Sequence[str]]
    shared: str
    foreign: Sequence[str] = ()


_CLIENTS: Mapping[str, _Servers] = {
    "claude-code": _Servers(
        "mcp__toolreeve__", ".claude.json", (("mcpServers",), ("projects", "*", "mcpServers")), ".mcp.json"
    ),
    "codex": _Servers("mcp__toolreeve__", ".codex/config.toml", (("mcp_servers",),), ".codex/config.toml"),
    "gemini": _Servers(
        "mcp_toolreeve_",
        ".gemini/settings.json",
        (("mcpServers",),),
        ".gemini/settings.json",
        (".gemini/extensions/*/gemini-extension.json",),
    ),
}


def is_own_tool(client: str, name: str, *, home: str, workspace: str, cwd: str) -> bool:
    """`cwd` is that of the call: clients look for files of a project in it, too."""
    known = _CLIENTS[client]
    if not name.startswith(known.prefix):
        return False
    own = Path(home, known.own).resolve()
    starts = {Path(workspace).resolve(), Path(workspace, cwd).resolve()}
    folders = {folder for start in starts for folder in (start, *start.parents)}
    foreign = [folder / known.shared for folder in folders if (folder / known.shared).resolve() != own]
    foreign += [path for pattern in known.foreign for path in Path(home).glob(pattern)]
    try:
        if any(_is_mistakable(key) for path in foreign for key, _ in _servers(path, known.tables)):
            return False
        named = [(key, entry) for key, entry in _servers(own, known.tables) if _is_mistakable(key)]
    except (ConfigError, OSError, ValueError):
        return False
    return bool(named) and all(key == OURS and _starts_us(entry) for key, entry in named)


def _is_mistakable(key: str) -> bool:
    """Whether the names of the server's tools begin as those of ours: one called `toolreeve__x` does, too."""
    plain = _UNNAMEABLE.sub("_", key)
    return plain == OURS or plain.startswith(f"{OURS}_")


def _servers(path: Path, tables: Sequence[Sequence[str]]) -> Iterator[tuple[str, Any]]:
    """Raises ConfigError, OSError, ValueError."""
    from toolreeve.config.jsonc import json_document
    from toolreeve.core.documents import parse_toml

    try:
        text = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return
    document = parse_toml(text, str(path)) if path.suffix == ".toml" else json_document(text or "{}", str(path))
    for table in tables:
        for servers in _walk(document.value, table):
            yield from servers.items()


def _walk(value: Any, keys: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        return
    if not keys:
        yield value
        return
    inner = value.values() if keys[0] == "*" else [value.get(keys[0])]
    for each in inner:
        yield from _walk(each, keys[1:])


def _starts_us(entry: Any) -> bool:
    """A relative path would lead into the workspace."""
    from toolreeve.config.mcp_servers.reader import is_ourselves

    if not isinstance(entry, Mapping) or not is_ourselves(entry) or not isinstance(entry.get("command"), str):
        return False
    folder, separator, program = entry["command"].rpartition("/")
    words = " ".join([program, *map(str, entry.get("args") or ())])
    return _LAUNCH.match(words) is not None and (not separator or folder.startswith("/"))
