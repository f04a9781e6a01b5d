"""Which programs are started, where do they run, and how much may they use?"""

from dataclasses import dataclass
from typing import Annotated, Literal

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Where programs run."""

    mode: Annotated[
        Literal["local", "docker", "none"],
        Field(
            "local: confined by this machine's kernel. docker: in a container. none: not confined at all, a choice of "
            "your own that every result shows.",
            ProjectScope.NEVER,
        ),
    ] = "local"
    require: Annotated[
        Literal["full", "landlock", "limits"],
        Field(
            "The least that is good enough; where the machine offers less, no program runs. full: namespaces, Landlock "
            "and filtered system calls. landlock: without namespaces. limits: resource limits only.",
            ProjectScope.STRICTER,
        ),
    ] = "landlock"
    concurrency: Annotated[
        int,
        Field("Programs that may run at the same time.", ProjectScope.LOWER, at_least=1),
    ] = 16
    readable: Annotated[
        tuple[str, ...],
        Field(
            "Toolchains and data outside the workspace that programs may read, besides the system's own.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ()
    image: Annotated[
        str,
        Field("The image that containers are made of in docker mode.", ProjectScope.NEVER),
    ] = "debian:stable-slim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Which programs the shell tools start, and how much they may use."""

    allowlist: Annotated[
        tuple[str, ...],
        Field(
            "The programs that execute_command may start, instead of the shipped list (`toolreeve tools "
            "execute_command` names the guide). A role still may start only what it may.",
            ProjectScope.NEVER,
        ),
    ] = ()
    blocklist: Annotated[
        tuple[str, ...],
        Field(
            "Programs that execute_command never starts, besides those it ships with; `git push` blocks only that. "
            "The lists of all sources add up.",
            ProjectScope.ADD,
        ),
    ] = ()
    timeout: Annotated[
        float,
        Field("Seconds that a command may take where the call does not say.", ProjectScope.LOWER, above=0),
    ] = 30.0
    network: Annotated[
        Literal["none", "guarded", "host"],
        Field(
            "What commands of the shell tools reach: nothing, what the network guard lets through, or all that this "
            "machine does.",
            ProjectScope.NEVER,
        ),
    ] = "none"
    memory_mb: Annotated[
        int,
        Field("Memory that a command with all it starts may use.", ProjectScope.LOWER, at_least=16),
    ] = 2048
    processes: Annotated[
        int,
        Field("Processes and threads that a command may have at once.", ProjectScope.LOWER, at_least=1),
    ] = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What run_tests and its like run, where it should not be detected. Each entry is a command, as for
    execute_command but with any program."""

    tests: Annotated[
        tuple[str, ...],
        Field("The commands of run_tests.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    lint: Annotated[
        tuple[str, ...],
        Field("The commands of run_lint.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    format: Annotated[
        tuple[str, ...],
        Field("The commands of run_format when it changes files.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    format_check: Annotated[
        tuple[str, ...],
        Field("The commands of run_format when it only checks.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    typecheck: Annotated[
        tuple[str, ...],
        Field("The commands of run_typecheck.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    build: Annotated[
        tuple[str, ...],
        Field("The commands of run_build.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    timeout: Annotated[
        float,
        Field("Seconds that one of these tools may take.", ProjectScope.LOWER, above=0),
    ] = 600.0
