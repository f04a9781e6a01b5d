"""`ServerStatus`: the state of one server, for people and programs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError

MAX_PROBLEMS = 100
"""Problems that are kept of one server."""


class ServerState(StrEnum):
    CONNECTING = "connecting"
    UP = "up"
    AWAY = "away"
    FAILED = "failed"
    OFF = "off"


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


def unavailable(server: str, problem: str) -> ToolError:
    return ToolError(
        ErrorCode.UPSTREAM,
        f"server {server!r} is unavailable: {problem}",
        suggestions=(f"toolreeve servers test {server}",),
    )
