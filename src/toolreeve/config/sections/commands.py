"""The [commands] table: programs and resources of the shell tools."""

from dataclasses import dataclass
from typing import Annotated, Literal

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
