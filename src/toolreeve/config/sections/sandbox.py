"""The [sandbox] table: how programs are confined."""

from dataclasses import dataclass
from typing import Annotated, Literal

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Where programs run."""

    mode: Annotated[
        Literal["local", "docker", "none"],
        Field(
            "local: confined by this machine's kernel. docker: in a container. none: not confined at all; every result "
            "says so.",
            ProjectScope.NEVER,
        ),
    ] = "local"
    require: Annotated[
        Literal["full", "landlock", "limits"],
        Field(
            "The weakest acceptable confinement; where the machine offers less, no program runs. full: namespaces, "
            "Landlock and filtered system calls. landlock: without namespaces. limits: resource limits only.",
            ProjectScope.STRICTER,
        ),
    ] = "landlock"
    concurrency: Annotated[
        int,
        Field("Maximum number of programs that run at the same time.", ProjectScope.LOWER, at_least=1),
    ] = 16
    readable: Annotated[
        tuple[str, ...],
        Field(
            "Toolchains and data outside the workspace that programs may read, in addition to the system's own.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ()
    image: Annotated[
        str,
        Field("The container image in docker mode.", ProjectScope.NEVER),
    ] = "debian:stable-slim"
