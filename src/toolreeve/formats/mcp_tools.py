"""Tool lists in MCP's format, converted for model providers."""

from collections.abc import Iterable, Mapping
from typing import Any

from toolreeve.formats.names import Provider


def convert_mcp_to_openai_tools(mcp_tools: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For OpenAI, and all that speak its format."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "parameters": tool["inputSchema"],
            },
        }
        for tool in mcp_tools
    ]


def get_tools_for_provider(mcp_tools: Iterable[Mapping[str, Any]], provider: str) -> list[dict[str, Any]]:
    """For openai, ollama or anthropic. Raises ToolreeveError for an unknown provider."""
    match Provider.named(provider):
        case Provider.ANTHROPIC:
            return [
                {
                    "name": tool["name"],
                    "description": tool.get("description", ""),
                    "input_schema": tool["inputSchema"],
                }
                for tool in mcp_tools
            ]
        case Provider.MCP:
            return [dict(tool) for tool in mcp_tools]
        case _:
            return convert_mcp_to_openai_tools(mcp_tools)
