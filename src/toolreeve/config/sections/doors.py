"""Settings of the servers: what clients see, addresses, tokens and limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from toolreeve.config.about import About, Project
from toolreeve.config.tables import REFERENCE, TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Mcp:
    """What MCP clients see of us, and where else servers are configured."""

    tools: Annotated[
        tuple[str, ...],
        About("What clients see: names, patterns such as git__*, and toolsets; everything if empty.", Project.NEVER),
    ] = ()
    search: Annotated[
        bool,
        About("Show clients search_tools and call_tool instead of every tool.", Project.NEVER),
    ] = False
    files: Annotated[
        tuple[str, ...],
        About("Files of other clients whose servers are used as well.", Project.NEVER, paths=True),
    ] = ()
    project_file: Annotated[
        bool,
        About(
            "Whether the servers of a workspace's .mcp.json are used, once the folder is trusted (`toolreeve trust`).",
            Project.TURN_OFF,
        ),
    ] = True
    state_key: Annotated[
        tuple[str, ...],
        About(
            "The secrets that seal what clients carry from one request to the next, each as ${secret:NAME}, the newest "
            "first: the same for all workers. One is made in the state directory if none is named.",
            Project.NEVER,
            shape={"type": "array", "items": {"type": "string", "pattern": REFERENCE}},
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """Where `toolreeve serve` listens, and whom it lets in."""

    host: Annotated[
        str,
        About("The address to listen on; anything but this machine alone needs a token.", Project.NEVER),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        About("The port to listen on.", Project.NEVER, at_least=0, shape={"type": "integer", "maximum": 65_535}),
    ] = 8733
    tokens: Annotated[
        tuple[Mapping[str, Any], ...],
        About(
            "Who may come in: bearer tokens with the user and role they stand for and the tools they see. "
            "With any configured, no request is answered without one.",
            Project.NEVER,
            shape=TOKENS,
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        About("Names under which it may be asked for, besides those of this machine.", Project.NEVER),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        About("Web pages that may ask it, as https://host[:port].", Project.NEVER),
    ] = ()
    max_connections: Annotated[
        int,
        About("Connections at once; less where there are fewer file descriptors.", Project.NEVER, at_least=1),
    ] = 1024
    max_connections_per_token: Annotated[
        int,
        About(
            "Connections of one token, or of one local user where no tokens are asked for.", Project.NEVER, at_least=1
        ),
    ] = 256
    max_connections_per_address: Annotated[
        int,
        About("Connections from one address; this machine is one, and so is an IPv6 /64.", Project.NEVER, at_least=1),
    ] = 512
    max_sessions: Annotated[
        int,
        About("Sessions of MCP clients up to 2025-11-25.", Project.NEVER, at_least=1),
    ] = 1000
    max_sessions_per_token: Annotated[
        int,
        About(
            "Sessions of one token or local user; its oldest idle one makes room for a new one.",
            Project.NEVER,
            at_least=1,
        ),
    ] = 100
    max_sessions_per_address: Annotated[
        int,
        About("Sessions that were opened from one address.", Project.NEVER, at_least=1),
    ] = 500
    max_buffered_bytes: Annotated[
        int,
        About("Bytes of requests under way and of responses that were not read yet.", Project.NEVER, at_least=1),
    ] = 256 * 1024 * 1024
    max_buffered_bytes_per_token: Annotated[
        int,
        About(
            "The same for one token or local user; what was not read for longest is dropped.", Project.NEVER, at_least=1
        ),
    ] = 64 * 1024 * 1024
    max_buffered_bytes_per_address: Annotated[
        int,
        About("The same for one address.", Project.NEVER, at_least=1),
    ] = 128 * 1024 * 1024
