"""What can be configured? One tree of plain values; each field says what it means and how far a project may go.

Every field here is wired to something that obeys it. A project's own file (`toolreeve.toml` in the workspace) may only
tighten: `Project` says, field by field, what that means.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from toolreeve.config.tables import REFERENCE, SERVERS, TOKENS

Mode = Literal["default", "plan", "strict", "bypass"]


class Project(StrEnum):
    """What a project's file may do to a setting."""

    NEVER = "never"
    LOWER = "lower"
    ADD = "add"
    TURN_OFF = "turn_off"
    STRICTER = "stricter"
    WHEN_TRUSTED = "when_trusted"


@dataclass(frozen=True, slots=True)
class About:
    """`paths` marks values that are resolved against the file that names them. `shape` is the JSON Schema of a value
    that is made of tables, or narrows a plain one; `also` are other spellings of the key in files."""

    description: str
    project: Project
    paths: bool = False
    at_least: float | None = None
    above: float | None = None
    shape: Mapping[str, Any] | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Which files tools can reach."""

    dir: Annotated[
        str,
        About("The directory that tools work in; the current directory if not set.", Project.NEVER, paths=True),
    ] = "."
    allow_write: Annotated[
        bool,
        About("Whether tools may change files; false turns every write into E_WRITE_DISABLED.", Project.TURN_OFF),
    ] = True
    extra_roots: Annotated[
        tuple[str, ...],
        About("Further directories that tools may read.", Project.NEVER, paths=True),
    ] = ()
    writable_roots: Annotated[
        tuple[str, ...],
        About("Further directories that tools may read and change.", Project.NEVER, paths=True),
    ] = ()
    search_allowed_bases: Annotated[
        tuple[str, ...],
        About(
            "Directories that search_directory may start from; the workspace if none is named.",
            Project.NEVER,
            paths=True,
        ),
    ] = ()
    sensitive_allow: Annotated[
        tuple[str, ...],
        About("Sensitive files, such as .env, that tools may touch all the same.", Project.NEVER),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which calls may run."""

    mode: Annotated[
        Mode,
        About(
            "default: safe calls run, the rest ask. strict: what is not allowed asks, what is dangerous is denied. "
            "plan: only read-only calls. bypass is taken from code or --mode alone.",
            Project.STRICTER,
        ),
    ] = "default"
    allowed_tools: Annotated[
        tuple[str, ...],
        About("Tools that run without being asked about; patterns such as git__* are fine.", Project.NEVER),
    ] = ()
    denied_tools: Annotated[
        tuple[str, ...],
        About("Tools that never run. The lists of all sources add up.", Project.ADD),
    ] = ()
    files: Annotated[
        tuple[str, ...],
        About(
            "Your policy files; policy.yaml beside this file is read if none is named. "
            "A policy.yaml in the workspace is read as well and may only tighten.",
            Project.NEVER,
            paths=True,
        ),
    ] = ()
    budget_limit: Annotated[
        float | None,
        About("Dollars that all calls together may spend; no limit if not set.", Project.LOWER, at_least=0),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """How people are asked."""

    timeout: Annotated[
        float,
        About("Seconds to wait for a person's answer.", Project.LOWER, above=0),
    ] = 60.0
    pending_hours: Annotated[
        float,
        About("Hours that a call may wait for an answer where nobody could be asked at once.", Project.LOWER, above=0),
    ] = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a call may use."""

    timeout: Annotated[
        float,
        About("Seconds that a call may take where its tool does not say.", Project.LOWER, above=0),
    ] = 60.0
    concurrency: Annotated[
        int,
        About("Calls that may run at the same time.", Project.LOWER, at_least=1),
    ] = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Which hosts tools can reach."""

    allow: Annotated[
        tuple[str, ...],
        About(
            "What may be reached, as [METHODS ]HOST[:PORT]; * is every public host on ports 80 and 443. "
            "A name spelled out, an address or a network opens private places. An empty list means none.",
            Project.NEVER,
        ),
    ] = ("*",)
    deny: Annotated[
        tuple[str, ...],
        About(
            "What may never be reached, in the same form; without a port on any. The lists of all sources add up.",
            Project.ADD,
        ),
    ] = ()
    timeout: Annotated[
        float,
        About("Seconds that an HTTP request may take where the call does not say.", Project.LOWER, above=0),
    ] = 30.0
    proxy: Annotated[
        str | None,
        About("The URL of a proxy that requests go through. Proxies of the environment are ignored.", Project.NEVER),
    ] = None
    ca_file: Annotated[
        str | None,
        About("A file of certificates to trust instead of the system's.", Project.NEVER, paths=True),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Where programs run."""

    mode: Annotated[
        Literal["local", "docker", "none"],
        About(
            "local: confined by this machine's kernel. docker: in a container. none: not confined at all, a choice of "
            "your own that every result shows.",
            Project.NEVER,
        ),
    ] = "local"
    require: Annotated[
        Literal["full", "landlock", "limits"],
        About(
            "The least that is good enough; where the machine offers less, no program runs. full: namespaces, Landlock "
            "and filtered system calls. landlock: without namespaces. limits: resource limits only.",
            Project.STRICTER,
        ),
    ] = "landlock"
    concurrency: Annotated[
        int,
        About("Programs that may run at the same time.", Project.LOWER, at_least=1),
    ] = 16
    readable: Annotated[
        tuple[str, ...],
        About(
            "Toolchains and data outside the workspace that programs may read, besides the system's own.",
            Project.NEVER,
            paths=True,
        ),
    ] = ()
    image: Annotated[
        str,
        About("The image that containers are made of in docker mode.", Project.NEVER),
    ] = "debian:stable-slim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Which programs the shell tools start, and how much they may use."""

    allowlist: Annotated[
        tuple[str, ...],
        About(
            "The programs that execute_command may start, instead of the shipped list (`toolreeve tools "
            "execute_command` names the guide). A role still may start only what it may.",
            Project.NEVER,
        ),
    ] = ()
    blocklist: Annotated[
        tuple[str, ...],
        About(
            "Programs that execute_command never starts, besides those it ships with; `git push` blocks only that. "
            "The lists of all sources add up.",
            Project.ADD,
        ),
    ] = ()
    timeout: Annotated[
        float,
        About("Seconds that a command may take where the call does not say.", Project.LOWER, above=0),
    ] = 30.0
    network: Annotated[
        Literal["none", "guarded", "host"],
        About(
            "What commands of the shell tools reach: nothing, what the network guard lets through, or all that this "
            "machine does.",
            Project.NEVER,
        ),
    ] = "none"
    memory_mb: Annotated[
        int,
        About("Memory that a command with all it starts may use.", Project.LOWER, at_least=16),
    ] = 2048
    processes: Annotated[
        int,
        About("Processes and threads that a command may have at once.", Project.LOWER, at_least=1),
    ] = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What run_tests and its like run, where it should not be detected. Each entry is a command, as for
    execute_command but with any program."""

    tests: Annotated[
        tuple[str, ...],
        About("The commands of run_tests.", Project.WHEN_TRUSTED),
    ] = ()
    lint: Annotated[
        tuple[str, ...],
        About("The commands of run_lint.", Project.WHEN_TRUSTED),
    ] = ()
    format: Annotated[
        tuple[str, ...],
        About("The commands of run_format when it changes files.", Project.WHEN_TRUSTED),
    ] = ()
    format_check: Annotated[
        tuple[str, ...],
        About("The commands of run_format when it only checks.", Project.WHEN_TRUSTED),
    ] = ()
    typecheck: Annotated[
        tuple[str, ...],
        About("The commands of run_typecheck.", Project.WHEN_TRUSTED),
    ] = ()
    build: Annotated[
        tuple[str, ...],
        About("The commands of run_build.", Project.WHEN_TRUSTED),
    ] = ()
    timeout: Annotated[
        float,
        About("Seconds that one of these tools may take.", Project.LOWER, above=0),
    ] = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is written down."""

    redact_env: Annotated[
        tuple[str, ...],
        About(
            "Environment variables whose values are never written down, besides those whose names tell "
            "(*_TOKEN, *_KEY, *_SECRET, *_PASSWORD…). The lists of all sources add up.",
            Project.ADD,
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the runtime keeps what it must remember."""

    dir: Annotated[
        str,
        About(
            "The directory of the audit log, undo and trust; toolreeve in the user's state directory if not set.",
            Project.NEVER,
            paths=True,
        ),
    ] = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of Toolreeve."""

    workspace: Workspace = field(default_factory=Workspace)
    policy: Policy = field(default_factory=Policy)
    approval: Approval = field(default_factory=Approval)
    limits: Limits = field(default_factory=Limits)
    network: Network = field(default_factory=Network)
    sandbox: Sandbox = field(default_factory=Sandbox)
    commands: Commands = field(default_factory=Commands)
    quality: Quality = field(default_factory=Quality)
    record: Record = field(default_factory=Record)
    state: State = field(default_factory=State)
    mcp: Mcp = field(default_factory=Mcp)
    serve: Serve = field(default_factory=Serve)
    mcp_servers: Annotated[
        Mapping[str, Any],
        About(
            "MCP servers whose tools are offered, by name. They run as programs: a project's own are ignored until the "
            "folder is trusted (`toolreeve trust`).",
            Project.WHEN_TRUSTED,
            shape=SERVERS,
            also=("mcpServers", "McpServers"),
        ),
    ] = field(default_factory=dict, repr=False)
    tool_files: Annotated[
        tuple[str, ...],
        About(
            "Python files whose @tool functions are registered, and YAML files that declare tools. They run as code: "
            "a project's own are ignored until the folder is trusted (`toolreeve trust`).",
            Project.WHEN_TRUSTED,
            paths=True,
        ),
    ] = ()
    error_profile: Annotated[
        Literal["acp-basic", "extended-json"],
        About(
            "How failures of tools in YAML are told: acp-basic gives a text as the detail of an error, extended-json a "
            "structure.",
            Project.NEVER,
        ),
    ] = "acp-basic"
