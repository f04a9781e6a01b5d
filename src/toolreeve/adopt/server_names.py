"""Assigns unique names to the adopted servers of several clients.

Pure: the same servers get the same names. Existing servers keep their names. A server that is already configured, under
whatever name, is not added again.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolreeve.config.mcp_servers.names import MAX_LENGTH, server_name


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedName:
    """The name of an adopted server. `new` is False if the same server was already configured."""

    name: str
    new: bool


@dataclass(slots=True)
class ServerNames:
    """The servers by name, growing as clients are added."""

    entries: dict[str, Mapping[str, Any]]
    added: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def assign(self, given: str, entry: Mapping[str, Any], client: str) -> AssignedName:
        wanted = server_name(given)
        for name in (wanted, *self.entries):
            if name in self.entries and _identity(self.entries[name]) == _identity(entry):
                return AssignedName(name=name, new=False)
        name = self._free(wanted, client)
        self.entries[name] = entry
        self.added[name] = entry
        return AssignedName(name=name, new=True)

    def _free(self, wanted: str, client: str) -> str:
        """`wanted`, else `wanted-client`, else `wanted-client-2` and so on."""
        if wanted not in self.entries:
            return wanted
        room = MAX_LENGTH - len(client) - len("--9999")
        longer = f"{wanted[:room].rstrip('._-')}-{client}"
        numbered = (f"{longer}-{number}" for number in itertools.count(2))
        return next(name for name in itertools.chain([longer], numbered) if name not in self.entries)


_NOT_IDENTITY = frozenset({"enabled", "timeout", "connect_timeout", "type", "transport", "trusted", "danger"})


def _identity(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What makes two entries the same server: not whether it is enabled or trusted, nor its timeouts and
    transport."""
    return {key: value for key, value in entry.items() if value and key not in _NOT_IDENTITY}
