"""What do lists of tools take up in a model's context? Measured on the lists themselves; nothing is assumed."""

from collections.abc import Mapping
from typing import Any

from toolreeve.config import Configuration
from toolreeve.core import json
from toolreeve.serve.mcp.meta_tools import TOOLS
from toolreeve.serve.mcp.tool_view import ToolView

BYTES_PER_TOKEN = 4
"""A rule of thumb: models differ by a third either way, the ratio of two lists hardly at all."""


PATIENCE = 20.0
"""Seconds that servers get to say what they have."""


async def measure(configuration: Configuration, servers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """About how many tokens each server's own list has, and what a client lists through us instead."""
    from toolreeve.runtime.toolreeve import Toolreeve

    async with Toolreeve(
        settings=configuration, mcp_servers=servers, approve=(), origin="cli", await_servers=False
    ) as reeve:
        await reeve.fleet.settled(PATIENCE)
        declared = [bound.spec for bound in reeve.tools.list() if bound.spec.declared is not None]
        everything, found = ToolView(reeve.tools).page().tools, ToolView(reeve.tools, search=True).page().tools
        states = {status.name: status for status in reeve.fleet.status()}
    listed = [name for name, status in states.items() if status.state == "up"]
    return {
        "servers": {name: _tokens(spec.declared for spec in declared if spec.server == name) for name in listed},
        "one_entry": _tokens(everything),
        "search": _tokens([*TOOLS, *found]),
        "not_listed": {name: status.problem for name, status in states.items() if status.state != "up"},
    }


def _tokens(tools: Any) -> int:
    return round(len(json.dumps(list(tools))) / BYTES_PER_TOKEN)
