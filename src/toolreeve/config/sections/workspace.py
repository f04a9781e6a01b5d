"""The [workspace] table: which files tools can reach."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Which files tools can reach."""

    dir: Annotated[
        str,
        Field("The directory that tools work in; the current directory if not set.", ProjectScope.NEVER, paths=True),
    ] = "."
    allow_write: Annotated[
        bool,
        Field(
            "Whether tools may change files; if false, every write fails with E_WRITE_DISABLED.", ProjectScope.TURN_OFF
        ),
    ] = True
    extra_roots: Annotated[
        tuple[str, ...],
        Field("Additional directories that tools may read.", ProjectScope.NEVER, paths=True),
    ] = ()
    writable_roots: Annotated[
        tuple[str, ...],
        Field("Additional directories that tools may read and change.", ProjectScope.NEVER, paths=True),
    ] = ()
    search_allowed_bases: Annotated[
        tuple[str, ...],
        Field(
            "Directories that search_directory may start in; the workspace if the list is empty.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ()
    sensitive_allow: Annotated[
        tuple[str, ...],
        Field(
            "Sensitive files, such as .env, and files that the host obeys, such as .github, that tools and commands "
            "may access anyway.",
            ProjectScope.NEVER,
        ),
    ] = ()
