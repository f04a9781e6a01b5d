"""What the two ends of a session say in these tests: a call, a question, and a yes."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.upstream.people import Person
from toolreeve.upstream.session.session import UpstreamSession

ELICITS: Mapping[str, Any] = {"elicitation": {}}


def calling(session: UpstreamSession, peer: Person | None = None, **more: Any) -> "asyncio.Task[dict[str, Any]]":
    return asyncio.ensure_future(session.request("tools/call", {"name": "work", **more}, peer=peer, timeout=5))


def asking(number: int | str = 900, method: str = "elicitation/create") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"message": "why"}}


async def accept(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {}}
