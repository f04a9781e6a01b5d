"""Messages of the control protocol."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from toolreeve.core import json

RequestType = Literal["question", "approval", "progress_update"]


@dataclass(frozen=True, slots=True)
class ControlRequest:
    request_id: str
    type: RequestType
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.request_id:
            raise ValueError("a control request needs a request_id")
        if self.type not in get_args(RequestType):
            raise ValueError(f"type {self.type!r} is not one of {', '.join(get_args(RequestType))}")

    @classmethod
    def create(cls, type: RequestType, data: Mapping[str, Any]) -> Self:
        return cls(f"req_{secrets.token_hex(4)}", type, data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Raises KeyError for a missing field, ValueError for a wrong one."""
        return cls(data["request_id"], data["type"], data["data"])

    def to_dict(self) -> dict[str, Any]:
        return {"request_id": self.request_id, "type": self.type, "data": dict(self.data)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict()).decode()


@dataclass(frozen=True, slots=True)
class ControlResponse:
    request_id: str
    data: Mapping[str, Any] | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.request_id, str):
            raise TypeError(f"the request_id of a control response must be text, got {self.request_id!r:.80}")
        if self.data is None and self.error is None:
            raise ValueError("a control response has data or an error")

    @property
    def is_error(self) -> bool:
        return self.error is not None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["request_id"], data.get("data"), data.get("error"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.from_dict(json.loads(text))

    def to_dict(self) -> dict[str, Any]:
        return {"request_id": self.request_id, "data": self.data, "error": self.error}

    def to_json(self) -> str:
        return json.dumps(self.to_dict()).decode()
