"""`initialize` and `server/discover`: versions, names and capabilities.

Nothing heavy is imported here: the first response must be sent before the runtime is up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import toolreeve
from toolreeve.core.visible import one_line
from toolreeve.rpc.errors import INVALID_PARAMS
from toolreeve.serve.mcp.protocol import HANDSHAKE_VERSIONS, MODERN_VERSIONS, Params, WireError, read_text
from toolreeve.serve.mcp.request_context import ClientInfo

SEARCHING = "Not all tools are listed: find more with `search_tools`, call them with `call_tool`."
MOST_LINES = 30
LONGEST_LINE = 160
BUILTIN_CATEGORIES: Mapping[str, str] = {
    "file": "read, write, edit, search, move and delete files; undo changes",
    "shell": "run commands in a sandbox",
    "http": "send HTTP requests",
    "web": "fetch web pages as text",
    "quality": "run tests, linters, type checks, formatters and builds; git status and diff",
    "system": "system information and the record of calls",
    "utility": "calculate, date and time",
}
"""What the builtin tools of each category do."""
BEYOND_TOOLS: Mapping[str, Mapping[str, Any]] = {
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
"""Capabilities that only upstream servers provide. While one is still connecting all are declared: an empty list is
valid."""


def server_info(name: str = "toolreeve") -> dict[str, Any]:
    return {"name": name, "version": toolreeve.__version__}


def server_capabilities(beyond: Collection[str] = ()) -> dict[str, Any]:
    return {"tools": {"listChanged": True}} | {
        name: dict(BEYOND_TOOLS[name]) for name in BEYOND_TOOLS if name in beyond
    }


def read_client(params: Params, client: ClientInfo) -> None:
    """Store the client's `initialize` params. Raises WireError, and then stores nothing."""
    requested = read_text(params, "protocolVersion")
    capabilities = _object(params, "capabilities")
    info = _object(params, "clientInfo")
    client.version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    client.capabilities = capabilities
    client.info = info


def initialize_result(
    client: ClientInfo, info: Mapping[str, Any], capabilities: Mapping[str, Any], *, instructions: str = ""
) -> dict[str, Any]:
    result = {"protocolVersion": client.version, "capabilities": capabilities, "serverInfo": info}
    return result | {"instructions": instructions} if instructions else result


def discover_result(capabilities: Mapping[str, Any], *, instructions: str = "") -> dict[str, Any]:
    result = {"supportedVersions": list(MODERN_VERSIONS), "capabilities": capabilities}
    return result | {"instructions": instructions} if instructions else result


def search_instructions(servers: Sequence[str]) -> str:
    """What is behind `search_tools`: a line for each server and each category of builtin tools."""
    builtin = [f"- {name}: {text}" for name, text in BUILTIN_CATEGORIES.items()]
    lines = [f"- {line}" for line in servers[:MOST_LINES]] + builtin
    if len(servers) > MOST_LINES:
        lines.append(f"- and {len(servers) - MOST_LINES} more servers")
    return "\n".join([SEARCHING, "Behind it:", *(line[:LONGEST_LINE] for line in lines)])


def server_lines(servers: Iterable[Any]) -> list[str]:
    """Each server with its place; what a server says of itself is not repeated to the model."""
    return [f"server {server.name} ({one_line(server.place)})" for server in servers if server.enabled]


def _object(params: Params, key: str) -> Mapping[str, Any]:
    value = params.get(key)
    if not isinstance(value, Mapping):
        raise WireError(INVALID_PARAMS, f"params.{key} must be an object")
    return value
