"""What are a client and we told about each other first? Versions, names, and what each of us can do.

Nothing heavy is imported here: the first answer must come before the tools are there.
"""

from collections.abc import Collection, Mapping
from typing import Any

import toolreeve
from toolreeve.serve.mcp.protocol import (
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    MODERN_VERSIONS,
    Params,
    WireError,
    read_text,
)
from toolreeve.serve.mcp.request_context import ClientInfo

SEARCHING = "Not all tools are listed: find more with `search_tools`, call them with `call_tool`."
BEYOND_TOOLS: Mapping[str, Mapping[str, Any]] = {
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
"""What only servers behind us can bring. One that is not connected yet may bring anything, and an empty list breaks no
promise."""


def server_info(name: str = "toolreeve") -> dict[str, Any]:
    return {"name": name, "version": toolreeve.__version__}


def server_capabilities(beyond: Collection[str] = ()) -> dict[str, Any]:
    return {"tools": {"listChanged": True}} | {
        name: dict(BEYOND_TOOLS[name]) for name in BEYOND_TOOLS if name in beyond
    }


def read_client(params: Params, client: ClientInfo) -> None:
    """Take over what `initialize` says about the client. Raises WireError, and then has taken over nothing."""
    requested = read_text(params, "protocolVersion")
    capabilities, info = _object(params, "capabilities"), _object(params, "clientInfo")
    client.version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    client.capabilities, client.info = capabilities, info


def initialize_result(
    client: ClientInfo, info: Mapping[str, Any], capabilities: Mapping[str, Any], *, search: bool
) -> dict[str, Any]:
    """The answer to `initialize`."""
    result = {"protocolVersion": client.version, "capabilities": capabilities, "serverInfo": info}
    return result | {"instructions": SEARCHING} if search else result


def discover_result(capabilities: Mapping[str, Any], *, search: bool) -> dict[str, Any]:
    """The answer to `server/discover`."""
    result = {"supportedVersions": list(MODERN_VERSIONS), "capabilities": capabilities}
    return result | {"instructions": SEARCHING} if search else result


def _object(params: Params, key: str) -> Mapping[str, Any]:
    value = params.get(key)
    if not isinstance(value, Mapping):
        raise WireError(INVALID_PARAMS, f"params.{key} must be an object")
    return value
