"""Which servers are there, and what may each do? One `ServerSpec` per server, whoever configured it.

A server is not trusted unless the user says so: what it tells about its own tools then lowers no danger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from toolreeve.core.danger import DangerLevel

Kind = Literal["stdio", "http", "sse"]
CONNECT_TIMEOUT = 30.0
BEHIND = "BEHIND_TOOLREEVE"
"""Set for every server that runs freely. One of our own programs that finds it starts no servers in its turn: behind
whatever wrapper it was started, it might be one of them itself, and they would go on without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One configured server, with every reference in its values resolved.

    `place` is the command line or URL as it was written, without the values of variables and without what looks like a
    secret: fit to be shown. `env` is what a stdio server is given besides the plain base, `secret_values` what must not
    come back from it.
    `allow` is None where every tool is offered. `prefix` stands before the names of its tools; "" for none.
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
        """Whether a tool, by the server's own name for it, is to be had at all; a deny wins."""
        named = self.allow is None or _any(tool, self.allow)
        return named and not _any(tool, self.deny)

    def danger_of(self, tool: str) -> DangerLevel | None:
        """What the user says about a tool: its very name first, else the first pattern that fits."""
        if tool in self.danger:
            return self.danger[tool]
        return next((level for pattern, level in self.danger.items() if fnmatchcase(tool, pattern)), None)


def _any(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
