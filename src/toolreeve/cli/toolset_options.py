"""What does a door show? The options that both MCP doors take."""

from collections.abc import Callable
from typing import Any

import click

Function = Callable[..., Any]


def shows_tools(command: Function) -> Function:
    """Adds `--tools` and `--search`; what is not said is as the settings have it."""
    search = click.option(
        "--search/--no-search", default=None, help="List only search_tools, call_tool, and what --tools names outright."
    )
    tools = click.option(
        "--tools",
        metavar="PATTERNS",
        help="What to show: categories, servers, names, globs, separated by commas; -NAME takes away.",
    )
    return tools(search(command))
