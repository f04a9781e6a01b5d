"""Which files and hosts can tools reach?"""

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
        Field("Whether tools may change files; false turns every write into E_WRITE_DISABLED.", ProjectScope.TURN_OFF),
    ] = True
    extra_roots: Annotated[
        tuple[str, ...],
        Field("Further directories that tools may read.", ProjectScope.NEVER, paths=True),
    ] = ()
    writable_roots: Annotated[
        tuple[str, ...],
        Field("Further directories that tools may read and change.", ProjectScope.NEVER, paths=True),
    ] = ()
    search_allowed_bases: Annotated[
        tuple[str, ...],
        Field(
            "Directories that search_directory may start from; the workspace if none is named.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ()
    sensitive_allow: Annotated[
        tuple[str, ...],
        Field(
            "Sensitive files, such as .env, and files that the host obeys, such as .github, that tools and commands "
            "may touch all the same.",
            ProjectScope.NEVER,
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Which hosts tools can reach."""

    allow: Annotated[
        tuple[str, ...],
        Field(
            "What may be reached, as [METHODS ]HOST[:PORT]; * is every public host on ports 80 and 443. "
            "A name spelled out, an address or a network opens private places. An empty list means none.",
            ProjectScope.NEVER,
        ),
    ] = ("*",)
    deny: Annotated[
        tuple[str, ...],
        Field(
            "What may never be reached, in the same form; without a port on any. The lists of all sources add up.",
            ProjectScope.ADD,
        ),
    ] = ()
    timeout: Annotated[
        float,
        Field("Seconds that an HTTP request may take where the call does not say.", ProjectScope.LOWER, above=0),
    ] = 30.0
    proxy: Annotated[
        str | None,
        Field(
            "The URL of a proxy that requests go through. Proxies of the environment are ignored.", ProjectScope.NEVER
        ),
    ] = None
    ca_file: Annotated[
        str | None,
        Field("A file of certificates to trust instead of the system's.", ProjectScope.NEVER, paths=True),
    ] = None
