"""Tools for connection tests: one answers, one never ends, one reports, one asks the client."""

import asyncio
from typing import Any

from toolreeve import Context, DangerLevel, tool
from toolreeve.core.mcp import McpPeer, PeerError


@tool(danger=DangerLevel.SAFE)
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(danger=DangerLevel.SAFE, timeout=600)
async def wait(context: Context) -> str:
    """Never end by itself."""
    context.progress("waiting")
    await asyncio.Event().wait()
    return "never"


@tool(danger=DangerLevel.SAFE)
async def steps(context: Context) -> str:
    """Report three steps."""
    for number in range(3):
        context.progress(f"step {number}")
        await asyncio.sleep(0)
    return "done"


@tool(danger=DangerLevel.SAFE)
async def roots(context: Context) -> dict[str, Any]:
    """Ask the client for its roots."""
    peer = context.call.peer
    assert isinstance(peer, McpPeer)
    try:
        return await peer.request("roots/list", {})
    except PeerError as problem:
        return {"refused": problem.to_dict()}


TOOLS = [echo, wait, steps, roots]
