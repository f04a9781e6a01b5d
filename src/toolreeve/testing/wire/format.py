"""What every wire format has: route, check, events of a reply."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from toolreeve.testing.script import ScriptedCall, Turn

PIECE = 7
"""Characters in a piece of streamed text or arguments: small, so that clients must join them."""


class RequestRejected(Exception):
    """The provider refuses this request."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class WireFormat(Protocol):
    def check(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Raises RequestRejected."""
        ...

    def events(self, turn: Turn, model: str) -> Iterator[str]:
        """Server-sent events, complete with their line ends."""
        ...

    def reply(self, turn: Turn, model: str) -> dict[str, Any]:
        """The whole reply, for a request that does not stream."""
        ...

    def error(self, status: int, message: str) -> dict[str, Any]: ...


def event(data: Any, name: str = "") -> str:
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def arguments(call: ScriptedCall) -> str:
    return json.dumps(dict(call.args)) if call.raw is None else call.raw


def require_header(headers: Mapping[str, str], name: str, prefix: str = "") -> None:
    if not headers.get(name, "").startswith(prefix) or headers.get(name, "") in ("", prefix):
        raise RequestRejected(f"missing header {name}", 401)


def require_known(body: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in body.keys() - set(known):
        raise RequestRejected(f"Unknown parameter: '{name}'.")


def require_name(name: Any, longest: int) -> None:
    if not isinstance(name, str) or not re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{longest}}}", name):
        raise RequestRejected(f"Invalid tool name {name!r}")


def require_object(schema: Any, where: str) -> None:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise RequestRejected(f"Invalid schema for {where}: type must be 'object'")


def require_answers(called: Iterable[str], answered: Iterable[str]) -> None:
    missing = set(called) - set(answered)
    surplus = set(answered) - set(called)
    if missing:
        raise RequestRejected(f"tool calls without a result: {', '.join(sorted(missing))}")
    if surplus:
        raise RequestRejected(f"results without a tool call: {', '.join(sorted(surplus))}")


def openai_error(status: int, message: str) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
