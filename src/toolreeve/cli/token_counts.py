"""Estimates the tokens that tool lists take in a model's context."""

from collections.abc import Mapping
from typing import Any

from toolreeve.config import Configuration
from toolreeve.core import json
from toolreeve.serve.mcp.meta_tools import TOOLS
from toolreeve.serve.mcp.tool_view import ToolView

BYTES_PER_TOKEN = 4
"""A rule of thumb: models differ by a third either way, the ratio of two lists hardly at all."""
LIST_TIMEOUT = 20.0
"""Seconds that servers have to list their tools."""


async def measure(configuration: Configuration, servers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The tokens of each server's own list, and of the lists that clients see through us instead."""
    from toolreeve.runtime.toolreeve import Toolreeve

    async with Toolreeve(
        settings=configuration, mcp_servers=servers, approve=(), origin="cli", await_servers=False
    ) as reeve:
        await reeve.fleet.settled(LIST_TIMEOUT)
        specs = [bound.spec for bound in reeve.tools.list() if bound.spec.declared is not None]
        all_tools = ToolView(reeve.tools).page().tools
        search_tools = ToolView(reeve.tools, search=True).page().tools
        statuses = reeve.fleet.status()
    up = [status.name for status in statuses if status.state == "up"]
    return {
        "servers": {name: _tokens(spec.declared for spec in specs if spec.server == name) for name in up},
        "one_entry": _tokens(all_tools),
        "search": _tokens([*TOOLS, *search_tools]),
        "not_listed": {status.name: status.problem for status in statuses if status.state != "up"},
    }


def _tokens(tools: Any) -> int:
    return round(len(json.dumps(list(tools))) / BYTES_PER_TOKEN)
