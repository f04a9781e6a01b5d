"""Settings of the servers: what clients see, addresses, tokens and limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from toolreeve.config.field import Field, ProjectScope
from toolreeve.config.table_schemas import REFERENCE, TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Mcp:
    """What MCP clients see of us, and where else servers are configured."""

    tools: Annotated[
        tuple[str, ...],
        Field(
            "What clients see: names, patterns such as git__*, and toolsets; everything if empty.", ProjectScope.NEVER
        ),
    ] = ()
    search: Annotated[
        bool,
        Field("Show clients search_tools and call_tool instead of every tool.", ProjectScope.NEVER),
    ] = False
    files: Annotated[
        tuple[str, ...],
        Field("Files of other clients whose servers are used as well.", ProjectScope.NEVER, paths=True),
    ] = ()
    project_file: Annotated[
        bool,
        Field(
            "Whether the servers of a workspace's .mcp.json are used, once the folder is trusted (`toolreeve trust`).",
            ProjectScope.TURN_OFF,
        ),
    ] = True
    state_key: Annotated[
        tuple[str, ...],
        Field(
            "The secrets that seal what clients carry from one request to the next, each as ${secret:NAME}, the newest "
            "first: the same for all workers. One is made in the state directory if none is named.",
            ProjectScope.NEVER,
            shape={"type": "array", "items": {"type": "string", "pattern": REFERENCE}},
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """Where `toolreeve serve` listens, and whom it lets in."""

    host: Annotated[
        str,
        Field("The address to listen on; anything but this machine alone needs a token.", ProjectScope.NEVER),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Field("The port to listen on.", ProjectScope.NEVER, at_least=0, shape={"type": "integer", "maximum": 65_535}),
    ] = 8733
    tokens: Annotated[
        tuple[Mapping[str, Any], ...],
        Field(
            "Who may come in: bearer tokens with the user and role they stand for and the tools they see. "
            "With any configured, no request is answered without one.",
            ProjectScope.NEVER,
            shape=TOKENS,
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        Field("Names under which it may be asked for, besides those of this machine.", ProjectScope.NEVER),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        Field("Web pages that may ask it, as https://host[:port].", ProjectScope.NEVER),
    ] = ()
    max_connections: Annotated[
        int,
        Field("Connections at once; less where there are fewer file descriptors.", ProjectScope.NEVER, at_least=1),
    ] = 1024
    max_connections_per_token: Annotated[
        int,
        Field(
            "Connections of one token, or of one local user where no tokens are asked for.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 256
    max_connections_per_address: Annotated[
        int,
        Field(
            "Connections from one address; this machine is one, and so is an IPv6 /64.", ProjectScope.NEVER, at_least=1
        ),
    ] = 512
    max_sessions: Annotated[
        int,
        Field("Sessions of MCP clients up to 2025-11-25.", ProjectScope.NEVER, at_least=1),
    ] = 1000
    max_sessions_per_token: Annotated[
        int,
        Field(
            "Sessions of one token or local user; its oldest idle one makes room for a new one.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 100
    max_sessions_per_address: Annotated[
        int,
        Field("Sessions that were opened from one address.", ProjectScope.NEVER, at_least=1),
    ] = 500
    max_buffered_bytes: Annotated[
        int,
        Field("Bytes of requests under way and of responses that were not read yet.", ProjectScope.NEVER, at_least=1),
    ] = 256 * 1024 * 1024
    max_buffered_bytes_per_token: Annotated[
        int,
        Field(
            "The same for one token or local user; what was not read for longest is dropped.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 64 * 1024 * 1024
    max_buffered_bytes_per_address: Annotated[
        int,
        Field("The same for one address.", ProjectScope.NEVER, at_least=1),
    ] = 128 * 1024 * 1024
