"""`ServerSpec`: the configuration of one upstream server, from any source.

A server is not trusted unless the user says so: the hints of an untrusted server never lower the danger of its tools.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from toolreeve.core.danger import DangerLevel

Kind = Literal["stdio", "http", "sse", "a2a"]
CONNECT_TIMEOUT = 30.0
BEHIND = "BEHIND_TOOLREEVE"
"""Environment variable of every server outside the sandbox. A `toolreeve mcp` that finds it starts no servers: it may
be an upstream server itself, behind any wrapper, and would start itself without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One configured server, with every reference in its values resolved.

    `place` is the command line or URL as written, without the values of variables and without what looks like a secret:
    safe to show. `env` is added to the base environment of a stdio server; `secret_values` are redacted from its
    output. `allow` is None where every tool is offered. `prefix` precedes the names of its tools; "" for none.
    """

    name: str
    kind: Kind
    place: str
    source: str
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None
    connect_timeout: float = CONNECT_TIMEOUT
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    danger: Mapping[str, DangerLevel] = field(default_factory=dict)
    trusted: bool = False
    prefix: str | None = None
    sandbox: Mapping[str, Any] | None = None
    oauth: Mapping[str, Any] | None = field(default=None, repr=False)
    enabled: bool = True
    secrets: tuple[str, ...] = ()
    secret_values: tuple[str, ...] = field(default=(), repr=False)

    def offers(self, tool: str) -> bool:
        """Whether a tool, by the server's own name for it, is offered; deny wins over allow."""
        allowed = self.allow is None or _matches_any(tool, self.allow)
        return allowed and not _matches_any(tool, self.deny)

    def danger_of(self, tool: str) -> DangerLevel | None:
        """The user's own level for a tool: by its exact name, else by the first pattern that matches."""
        if tool in self.danger:
            return self.danger[tool]
        return next((level for pattern, level in self.danger.items() if fnmatchcase(tool, pattern)), None)


def _matches_any(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
