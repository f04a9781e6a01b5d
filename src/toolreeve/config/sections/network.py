"""The [network] table: which hosts tools can reach."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Which hosts tools can reach."""

    allow: Annotated[
        tuple[str, ...],
        Field(
            "What tools may reach, as [METHODS ]HOST[:PORT]; * is every public host on ports 80 and 443. "
            "Private addresses are reached only if named: a host name, an address or a network. "
            "An empty list allows nothing.",
            ProjectScope.NEVER,
        ),
    ] = ("*",)
    deny: Annotated[
        tuple[str, ...],
        Field(
            "What tools may never reach, in the same form; without a port, any port. The lists of all sources add up.",
            ProjectScope.ADD,
        ),
    ] = ()
    timeout: Annotated[
        float,
        Field("Timeout of an HTTP request in seconds, unless the call sets one.", ProjectScope.LOWER, above=0),
    ] = 30.0
    proxy: Annotated[
        str | None,
        Field("The proxy URL for requests. Proxy variables of the environment are ignored.", ProjectScope.NEVER),
    ] = None
    ca_file: Annotated[
        str | None,
        Field("A file of CA certificates to trust instead of the system's.", ProjectScope.NEVER, paths=True),
    ] = None
