"""MCP protocol constants, the modern request envelope, and JSON-RPC errors.

JSON is passed through as plain dicts, so that no field sent by a client or a server is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core.mcp import Era, RpcError
from toolreeve.rpc.errors import INVALID_PARAMS, UNSUPPORTED_VERSION

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", str(Era.LEGACY))
MODERN_VERSIONS = (str(Era.MODERN),)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""Methods whose modern results carry a cache lifetime."""

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

Params = Mapping[str, Any]


class WireError(RpcError):
    """The JSON-RPC error that answers a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The client data in every request of the modern era."""

    version: str
    info: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    log_level: str | None = None


def is_modern(params: Any) -> bool:
    """Whether the request carries the protocol version in `_meta`."""
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    return isinstance(meta, Mapping) and VERSION_KEY in meta


def read_envelope(params: Any) -> Envelope:
    """Raises WireError for missing or invalid fields."""
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    if not isinstance(meta, Mapping):
        raise WireError(INVALID_PARAMS, f"params._meta must be an object with {VERSION_KEY!r} and {CAPABILITIES_KEY!r}")
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        raise WireError(INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}")
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise WireError(INVALID_PARAMS, f"{VERSION_KEY} must be a string")
    if version not in MODERN_VERSIONS:
        raise unsupported(version)
    return Envelope(
        version=version,
        info=_object(meta, CLIENT_KEY),
        capabilities=_object(meta, CAPABILITIES_KEY),
        log_level=read_log_level(meta[LOG_LEVEL_KEY]) if meta.get(LOG_LEVEL_KEY) is not None else None,
    )


def unsupported(requested: str) -> WireError:
    data = {"supported": list(MODERN_VERSIONS), "requested": requested}
    return WireError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def read_log_level(level: Any) -> str:
    if level not in LOG_LEVELS:
        raise WireError(INVALID_PARAMS, f"the log level must be one of {', '.join(LOG_LEVELS)}")
    return str(level)


def read_text(params: Params, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str) or not value:
        raise WireError(INVALID_PARAMS, f"params.{key} must be a non-empty string")
    return value


def progress_token(params: Params) -> str | int | None:
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, Mapping) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def _object(meta: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = meta.get(key)
    if value is None and key == CLIENT_KEY:
        return {}
    if not isinstance(value, Mapping):
        raise WireError(INVALID_PARAMS, f"{key} must be an object")
    return value


def stamp(method: str, result: dict[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    """Add the fields that every modern result carries."""
    result.setdefault("resultType", "complete")
    if method in CACHEABLE and result["resultType"] == "complete":
        result.setdefault("ttlMs", 0)
        result.setdefault("cacheScope", "private")
    meta = result.get("_meta")
    result["_meta"] = {**meta, SERVER_KEY: info} if isinstance(meta, Mapping) else {SERVER_KEY: info}
    return result
