"""Negotiates the protocol version with a server, in either era.

An unknown version is never guessed at: the server counts as unavailable, and both versions are named.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolreeve.core.mcp import Era
from toolreeve.rpc.errors import UNSUPPORTED_VERSION
from toolreeve.upstream.transports.transport import RemoteError, RequestRefused

if TYPE_CHECKING:
    from toolreeve.upstream.session.session import UpstreamSession

LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
METHODS = frozenset({"initialize", "server/discover"})
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_PROBE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeResult:
    """What a server said about itself. `version` is the protocol's, empty before it is agreed on."""

    version: str
    server_info: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None


async def negotiate(session: "UpstreamSession", era: Era | None) -> None:
    """Without an era, detects it. Raises ServerUnavailable, RemoteError, TimeoutError."""
    if era is Era.LEGACY:
        await _initialize(session)
    elif era is Era.MODERN:
        await _discover(session)
    else:
        await _detect_era(session)


async def _detect_era(session: "UpstreamSession") -> None:
    """A server that does not answer `server/discover` is of the era before that request existed."""
    if await _speaks_modern(session):
        return
    try:
        await _initialize(session)
    except RemoteError as problem:
        if problem.code != UNSUPPORTED_VERSION:  # a slow server, which took the probe for the handshake
            raise
        await _discover(session)


async def _speaks_modern(session: "UpstreamSession") -> bool:
    timeout = None if session.rejects_unknown_methods else _PROBE_SECONDS
    try:
        await _discover(session, timeout)
    except (RemoteError, TimeoutError, _OtherVersion):
        return False
    return True


class _OtherVersion(RequestRefused):
    """The server answers `server/discover`, but without the version we asked for."""


async def _discover(session: "UpstreamSession", timeout: float | None = None) -> None:
    session.handshake = HandshakeResult(version=Era.MODERN)
    try:
        result = await _send_discover(session, timeout)
        versions = result.get("supportedVersions")
        if not isinstance(versions, list) or Era.MODERN not in versions:
            raise _OtherVersion(f"the server supports the protocol versions {_shown(versions)}, not {Era.MODERN}")
    except BaseException:
        session.handshake = HandshakeResult(version="")
        raise
    meta = result.get("_meta")
    server_info = meta.get(_SERVER_INFO) if isinstance(meta, dict) else None
    session.handshake = _read_result(Era.MODERN, result, server_info)


async def _send_discover(session: "UpstreamSession", timeout: float | None) -> dict[str, Any]:
    """Sent again to a server that refuses the version but lists it as supported: an intermediary refused it."""
    try:
        return await session.request("server/discover", {}, timeout=timeout)
    except RemoteError as problem:
        supported = problem.data.get("supported") if isinstance(problem.data, dict) else None
        if problem.code != UNSUPPORTED_VERSION or not isinstance(supported, list) or Era.MODERN not in supported:
            raise
    return await session.request("server/discover", {}, timeout=timeout)


async def _initialize(session: "UpstreamSession") -> None:
    params = {"protocolVersion": str(Era.LEGACY), **session.introduction()}
    result = await session.request("initialize", params)
    version = result.get("protocolVersion")
    if version not in LEGACY_VERSIONS:
        known = ", ".join((*LEGACY_VERSIONS, Era.MODERN))
        raise RequestRefused(f"the server supports the protocol version {_shown([version])}; known are {known}")
    session.handshake = _read_result(version, result, result.get("serverInfo"))
    session.notify("notifications/initialized")


def _read_result(version: str, result: Mapping[str, Any], server_info: Any) -> HandshakeResult:
    capabilities = result.get("capabilities")
    instructions = result.get("instructions")
    return HandshakeResult(
        version=version,
        server_info=server_info if isinstance(server_info, dict) else {},
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
    )


def _shown(versions: Any) -> str:
    return ascii(versions)[:100]
