"""The list of servers that were found, without what reads them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolreeve.core.errors import ConfigError

if TYPE_CHECKING:
    from toolreeve.upstream.server_spec import ServerSpec


@dataclass(slots=True)
class Servers:
    """The servers found: specs in order, the problems of the others, and notices for the user."""

    specs: list["ServerSpec"] = field(default_factory=list)
    problems: list[ConfigError] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add(self, spec: "ServerSpec") -> None:
        """The first server of a name wins; a notice names the other."""
        for kept in self.specs:
            if kept.name == spec.name:
                self.notices.append(
                    f"{spec.source}: the server {spec.name!r} is ignored: {kept.source} defines it already"
                )
                return
        self.specs.append(spec)

    def take(self, other: "Servers") -> None:
        for spec in other.specs:
            self.add(spec)
        self.problems += other.problems
        self.notices += other.notices
