"""The [serve] table: address, tokens and quotas of the HTTP server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from toolreeve.config.field import Field, ProjectScope
from toolreeve.config.table_schemas import OIDC, TOKENS, WEBHOOKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """Where `toolreeve serve` listens, and who may connect."""

    host: Annotated[
        str,
        Field("The address to listen on; any other than loopback needs a token.", ProjectScope.NEVER),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Field("The port to listen on.", ProjectScope.NEVER, at_least=0, shape={"type": "integer", "maximum": 65_535}),
    ] = 8733
    tokens: Annotated[
        tuple[Mapping[str, Any], ...],
        Field(
            "Bearer tokens, each with its user, role and the tools it sees. "
            "Once any is configured, every request needs one.",
            ProjectScope.NEVER,
            shape=TOKENS,
        ),
    ] = ()
    oidc: Annotated[
        Mapping[str, Any],
        Field(
            "OpenID login to the console at /login/oidc: the provider, and the role of each group. "
            "Needs the extra `oidc`.",
            ProjectScope.NEVER,
            shape={"type": "object", "anyOf": [{"maxProperties": 0}, OIDC]},
        ),
    ] = field(default_factory=dict)
    drain_seconds: Annotated[
        float,
        Field("Seconds that running requests have to end after SIGTERM.", ProjectScope.NEVER, at_least=0),
    ] = 5.0
    webhooks: Annotated[
        tuple[Mapping[str, Any], ...],
        Field(
            "Where events are sent, signed and retried; further ones are added over REST.",
            ProjectScope.NEVER,
            shape=WEBHOOKS,
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        Field("Host names that requests may use, in addition to those of this machine.", ProjectScope.NEVER),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        Field("Origins of web pages that may connect (CORS), as https://host[:port].", ProjectScope.NEVER),
    ] = ()
    max_connections: Annotated[
        int,
        Field("Open connections in total; fewer if file descriptors are short.", ProjectScope.NEVER, at_least=1),
    ] = 1024
    max_connections_per_token: Annotated[
        int,
        Field(
            "Open connections per token, or per local user if no tokens are configured.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 256
    max_connections_per_address: Annotated[
        int,
        Field(
            "Open connections per address; this machine counts as one, and so does an IPv6 /64.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 512
    max_sessions: Annotated[
        int,
        Field("MCP sessions in total (protocol versions up to 2025-11-25).", ProjectScope.NEVER, at_least=1),
    ] = 1000
    max_sessions_per_token: Annotated[
        int,
        Field(
            "MCP sessions per token or local user; the oldest idle one is closed to make room.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 100
    max_sessions_per_address: Annotated[
        int,
        Field("MCP sessions per address.", ProjectScope.NEVER, at_least=1),
    ] = 500
    max_buffered_bytes: Annotated[
        int,
        Field(
            "Buffered bytes of requests in progress and of unread responses, in total.", ProjectScope.NEVER, at_least=1
        ),
    ] = 256 * 1024 * 1024
    max_buffered_bytes_per_token: Annotated[
        int,
        Field(
            "Buffered bytes per token or local user; the response unread for longest is dropped.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 64 * 1024 * 1024
    max_buffered_bytes_per_address: Annotated[
        int,
        Field("Buffered bytes per address.", ProjectScope.NEVER, at_least=1),
    ] = 128 * 1024 * 1024
