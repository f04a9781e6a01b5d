"""The [commands] table: programs and resources of the shell tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Which programs the shell tools start, and how much they may use."""

    allowlist: Annotated[
        tuple[str, ...],
        Field(
            "The programs that execute_command may start, instead of the built-in list (`toolreeve tools "
            "execute_command` names the guide). The limits of each role still apply.",
            ProjectScope.NEVER,
        ),
    ] = ()
    blocklist: Annotated[
        tuple[str, ...],
        Field(
            "Programs that execute_command never starts, in addition to the built-in list; `git push` blocks only that "
            "subcommand. The lists of all sources add up.",
            ProjectScope.ADD,
        ),
    ] = ()
    timeout: Annotated[
        float,
        Field("Timeout of a command in seconds, unless the call sets one.", ProjectScope.LOWER, above=0),
    ] = 30.0
    network: Annotated[
        Literal["none", "guarded", "host"],
        Field(
            "What commands of the shell tools can reach. none: nothing. guarded: what the network guard allows. "
            "host: everything this machine can reach.",
            ProjectScope.NEVER,
        ),
    ] = "none"
    memory_mb: Annotated[
        int,
        Field("Memory in MB for a command and everything it starts.", ProjectScope.LOWER, at_least=16),
    ] = 2048
    processes: Annotated[
        int,
        Field("Processes and threads that a command may have at once.", ProjectScope.LOWER, at_least=1),
    ] = 256
    toolchains: Annotated[
        bool,
        Field(
            "Whether commands can use the programs on your own PATH that lie below your home directory and /opt: "
            "pyenv, nvm, cargo, uv, conda, go and the like, read-only. Credentials in them stay hidden.",
            ProjectScope.TURN_OFF,
        ),
    ] = True
    path: Annotated[
        tuple[str, ...],
        Field(
            "Further directories with programs for commands, searched first; read-only.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ()
    readable: Annotated[
        tuple[str, ...],
        Field("Further files and directories that commands may read.", ProjectScope.NEVER, paths=True),
    ] = ()
    env: Annotated[
        Mapping[str, Any],
        Field(
            "Environment variables of commands.",
            ProjectScope.NEVER,
            shape={"type": "object", "additionalProperties": {"type": "string"}},
        ),
    ] = field(default_factory=dict, repr=False)
    env_pass: Annotated[
        tuple[str, ...],
        Field("Names of your own environment variables that commands get, too.", ProjectScope.NEVER),
    ] = ()
    home: Annotated[
        str | None,
        Field(
            "The home directory of commands, which they may write and which stays. If not set, each command has an "
            "empty one of its own.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = None
