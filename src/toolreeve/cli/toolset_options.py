"""The options `--tools` and `--search` of both MCP servers."""

from collections.abc import Callable
from typing import Any

import click

Function = Callable[..., Any]


def toolset_options(command: Function) -> Function:
    """Without them, the settings apply."""
    search = click.option(
        "--search/--no-search", default=None, help="List only search_tools, call_tool, and tools that --tools names."
    )
    tools = click.option(
        "--tools",
        metavar="PATTERNS",
        help="The tools to show: categories, servers, names and globs, separated by commas; -NAME excludes; all for "
        "every tool. By default those that another tool covers can be called but are not listed.",
    )
    return tools(search(command))
