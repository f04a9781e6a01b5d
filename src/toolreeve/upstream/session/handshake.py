"""How do a server and we come to speak the same protocol? By asking it what it speaks, or by the older handshake.

A version that we do not know is never guessed at: the server counts as away, and both versions are named.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolreeve.core.mcp import Era
from toolreeve.upstream.transports.transport import RemoteError, RequestRefused

if TYPE_CHECKING:
    from toolreeve.upstream.session.session import UpstreamSession

LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
METHODS = frozenset({"initialize", "server/discover"})
_UNSUPPORTED_VERSION = -32022
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_PROBE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What a server said of itself. `version` is the protocol's, empty before it is agreed on."""

    version: str
    server_info: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None


async def shake(session: "UpstreamSession", era: Era | None) -> None:
    """Raises ServerAway, RemoteError, TimeoutError."""
    if era is Era.LEGACY:
        await _initialize(session)
    elif era is Era.MODERN:
        await _discover(session)
    else:
        await _find_out(session)


async def _find_out(session: "UpstreamSession") -> None:
    """A server that is asked what it speaks and does not say so speaks as all did before the question existed."""
    if await _speaks_modern(session):
        return
    try:
        await _initialize(session)
    except RemoteError as problem:
        if problem.code != _UNSUPPORTED_VERSION:  # it began slowly, and took the question for the beginning
            raise
        await _discover(session)


async def _speaks_modern(session: "UpstreamSession") -> bool:
    try:
        await _discover(session, None if session.is_answered else _PROBE)
    except (RemoteError, TimeoutError, _OtherVersion):
        return False
    return True


class _OtherVersion(RequestRefused):
    """It answers the question, but with versions that are not the one we wanted to hear."""


async def _discover(session: "UpstreamSession", timeout: float | None = None) -> None:
    session.greeting = Greeting(version=Era.MODERN)
    try:
        told = await _question(session, timeout)
        versions = told.get("supportedVersions")
        if not isinstance(versions, list) or Era.MODERN not in versions:
            raise _OtherVersion(f"the server speaks {_named(versions)}, and was to speak {Era.MODERN}")
    except BaseException:
        session.greeting = Greeting(version="")
        raise
    meta = told.get("_meta")
    session.greeting = _greeting(Era.MODERN, told, meta.get(_SERVER_INFO) if isinstance(meta, dict) else None)


async def _question(session: "UpstreamSession", timeout: float | None) -> dict[str, Any]:
    """Asked once more of a server that refuses the version and names the same one: something in between did it."""
    try:
        return await session.request("server/discover", {}, timeout=timeout)
    except RemoteError as problem:
        supported = problem.data.get("supported") if isinstance(problem.data, dict) else None
        if problem.code != _UNSUPPORTED_VERSION or not isinstance(supported, list) or Era.MODERN not in supported:
            raise
    return await session.request("server/discover", {}, timeout=timeout)


async def _initialize(session: "UpstreamSession") -> None:
    told = await session.request("initialize", {"protocolVersion": str(Era.LEGACY), **session.introduction()})
    version = told.get("protocolVersion")
    if version not in LEGACY_VERSIONS:
        known = ", ".join((*LEGACY_VERSIONS, Era.MODERN))
        raise RequestRefused(f"the server speaks the protocol version {_named([version])}; known are {known}")
    session.greeting = _greeting(version, told, told.get("serverInfo"))
    session.notify("notifications/initialized")


def _greeting(version: str, told: Mapping[str, Any], info: Any) -> Greeting:
    capabilities, instructions = told.get("capabilities"), told.get("instructions")
    return Greeting(
        version=version,
        server_info=info if isinstance(info, dict) else {},
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
    )


def _named(versions: Any) -> str:
    return ascii(versions)[:100]
