"""Upstream servers and a caller that speaks no MCP, with a server made with the official library."""

import sys
from pathlib import Path

import pytest

from tests.callers import PlainCaller
from tests.world import World
from toolreeve.core.call import ToolCall
from toolreeve.core.mcp import PeerError
from toolreeve.upstream.session.peer import PlainPeer, as_mcp_peer

SERVER = str(Path(__file__).parents[1] / "servers" / "official.py")


async def test_a_plain_caller_gets_progress_and_is_not_asked_by_servers(world: World) -> None:
    caller = PlainCaller()
    table = {"command": sys.executable, "args": [SERVER], "danger": "safe"}
    async with world.reeve(mcp_servers={"s": table}) as reeve:
        steps = await reeve.run(ToolCall(tool="s__steps", args={"text": "x"}, peer=caller, timeout=30.0))
        asked = await reeve.run(ToolCall(tool="s__ask", args={"text": "x"}, peer=caller, timeout=30.0))

    assert steps.success
    assert caller.reports == ["step 0", "step 1", "step 2"]
    assert asked.output == "cancel None"
    assert caller.requests == []


async def test_only_progress_is_passed_on_and_requests_are_refused() -> None:
    caller = PlainCaller()
    peer = as_mcp_peer(caller)
    assert isinstance(peer, PlainPeer)

    await peer.notify("notifications/message", {"level": "info", "data": "x"})
    await peer.notify("notifications/progress", {"progress": 1})
    await peer.notify("notifications/progress", {"progress": 2, "message": "half"})

    assert caller.reports == ["half"]
    with pytest.raises(PeerError, match="roots/list"):
        await peer.request("roots/list", {})
    assert as_mcp_peer(peer) is peer
