"""Events: the envelope shared by the bus, streams and webhooks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`event` is its kind, `task_id` the call it belongs to, `component` the part that emits it."""

    event: str
    task_id: str
    component: str
    data: Mapping[str, Any]
    at: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "event": self.event,
            "task_id": self.task_id,
            "timestamp": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "component": self.component,
            "data": dict(self.data),
        }
