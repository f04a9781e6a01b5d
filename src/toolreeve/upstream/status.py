"""`ServerStatus`: the state of one server, for people and programs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """`place` is its command line or URL, without secrets; `problem` is why it is not connected."""

    name: str
    source: str
    state: str
    kind: str = ""
    place: str = ""
    trusted: bool = False
    era: str | None = None
    tools: int = 0
    changed: tuple[str, ...] = ()
    problem: str = ""
    problems: tuple[str, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "place": self.place,
            "source": self.source,
            "state": self.state,
            "trusted": self.trusted,
            "era": self.era,
            "tools": self.tools,
            "changed": list(self.changed),
            "problem": self.problem,
            "problems": list(self.problems),
            "info": dict(self.info),
        }
