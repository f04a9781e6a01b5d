"""Under which names do the servers of several clients stand side by side? Pure: the same servers give the same names.

What the user already has keeps its name. A server that is there already, whatever it is called, is not added again.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolreeve.config.mcp_servers.names import MAX_LENGTH, server_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNames:
    """Where one server of a client went. `new` is False where the same server was there already."""

    name: str
    new: bool


@dataclass(slots=True)
class Names:
    """The servers by name, growing as clients are added."""

    entries: dict[str, Mapping[str, Any]]
    added: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def settle(self, given: str, entry: Mapping[str, Any], client: str) -> ServerNames:
        wanted = server_name(given)
        for name in (wanted, *self.entries):
            if name in self.entries and _same(self.entries[name], entry):
                return ServerNames(name=name, new=False)
        name = self._free(wanted, client)
        self.entries[name] = self.added[name] = entry
        return ServerNames(name=name, new=True)

    def _free(self, wanted: str, client: str) -> str:
        """The name, or with the client's behind it, or with a number behind that."""
        room = MAX_LENGTH - len(client) - len("--9999")
        others = (
            f"{wanted[:room].rstrip('._-')}-{client}" + (f"-{count}" if count > 1 else "")
            for count in itertools.count(1)
        )
        return next(name for name in itertools.chain([wanted], others) if name not in self.entries)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two entries lead to the same server; that one is turned off, or says how it is reached, makes it no
    other."""
    ignored = {"enabled", "timeout", "connect_timeout", "type", "transport"}
    kept = ({key: value for key, value in entry.items() if key not in ignored and value} for entry in (one, other))
    first, second = kept
    return first == second
