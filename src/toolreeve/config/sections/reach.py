"""Which files and hosts can tools reach?"""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.about import About, Project


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
        About(
            "Sensitive files, such as .env, and files that the host obeys, such as .github, that tools and commands "
            "may touch all the same.",
            Project.NEVER,
        ),
    ] = ()


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
