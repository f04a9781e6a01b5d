"""Messages of the session tests: a call, a server request, and its answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.upstream.callers import ScriptedCaller
from toolreeve.upstream.session.session import UpstreamSession

ELICITS: Mapping[str, Any] = {"elicitation": {}}


def start_call(
    session: UpstreamSession, peer: ScriptedCaller | None = None, **more: Any
) -> "asyncio.Task[dict[str, Any]]":
    return asyncio.ensure_future(session.request("tools/call", {"name": "work", **more}, peer=peer, timeout=5))


def server_request(number: int | str = 900, method: str = "elicitation/create") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"message": "why"}}


async def accept(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {}}
