"""What do lists of tools take up in a model's context? Measured on the lists themselves; nothing is assumed."""

from collections.abc import Mapping
from typing import Any

from toolreeve.config import Configuration
from toolreeve.core import json
from toolreeve.serve.mcp.meta_tools import TOOLS
from toolreeve.serve.mcp.views import View

BYTES_PER_TOKEN = 4
"""A rule of thumb: models differ by a third either way, the ratio of two lists hardly at all."""


async def measure(configuration: Configuration, servers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """About how many tokens the servers' own lists have, and what a client lists through us instead."""
    from toolreeve.runtime import Toolreeve

    async with Toolreeve(settings=configuration, mcp_servers=servers, approve=(), origin="cli") as reeve:
        specs = [bound.spec for bound in reeve.tools.list()]
        own = [spec.declared for spec in specs if spec.declared is not None and not spec.hidden]
        everything, found = View(reeve.tools).page().tools, View(reeve.tools, search=True).page().tools
        away = {status.name: status.problem for status in reeve.fleet.status() if status.state != "up"}
    return {
        "before": _tokens(own),
        "one_entry": _tokens(everything),
        "search": _tokens([*TOOLS, *found]),
        "not_listed": away,
    }


def _tokens(tools: Any) -> int:
    return round(len(json.dumps(list(tools))) / BYTES_PER_TOKEN)
