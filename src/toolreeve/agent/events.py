"""Events of an agent's run, in order; `ended` is always the last."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EventKind(StrEnum):
    STARTED = "started"
    TEXT = "text"
    """A piece of what the model says, as it arrives."""
    TURN = "turn"
    """A complete turn of the model: text, calls, usage and cost."""
    PHASE = "phase"
    """A phase begins, or the checks of one have run."""
    TOOL_STARTED = "tool_started"
    TOOL_ENDED = "tool_ended"
    RETRIED = "retried"
    """What was said in this turn so far is void: the turn is repeated."""
    COMPACTED = "compacted"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class AgentEvent:
    kind: EventKind
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"event": str(self.kind), **self.data}
