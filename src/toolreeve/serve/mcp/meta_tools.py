"""`search_tools` and `call_tool`: many tools without listing them all.

`call_tool` is only a notation: the tool that it names takes the road, under its own name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.formats.summary import summary_line
from toolreeve.rpc.errors import INVALID_PARAMS
from toolreeve.serve.mcp.protocol import WireError
from toolreeve.serve.mcp.tool_view import ToolView

SEARCH = "search_tools"
CALL = "call_tool"
MAX_FOUND = 50
_QUIET = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
TOOLS: Sequence[Mapping[str, Any]] = (
    {
        "name": SEARCH,
        "description": "Find tools by what they do. Gives their names, descriptions and input schemas; call one of "
        f"them with `{CALL}`.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words that say what is to be done."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "default": 10},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"tools": {"type": "array", "items": {"type": "object"}}},
            "required": ["tools"],
        },
        "annotations": _QUIET,
    },
    {
        "name": CALL,
        "description": f"Call a tool that `{SEARCH}` found.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's name, as it was found."},
                "arguments": {"type": "object", "description": "What the tool's input schema asks for."},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True},
    },
)


def found(view: ToolView, args: Mapping[str, Any]) -> dict[str, Any]:
    """A CallToolResult with the tools that match the query."""
    query = args.get("query")
    limit = args.get("limit", 10)
    if not isinstance(query, str) or not query.strip() or isinstance(limit, bool) or not isinstance(limit, int):
        return _wrong(f"{SEARCH} takes `query`, a text, and `limit`, a whole number")
    tools = [
        {key: tool[key] for key in ("name", "description", "inputSchema") if key in tool}
        for tool in view.matching(query[:1000], min(max(limit, 1), MAX_FOUND))
    ]
    text = "\n".join(map(_line, tools)) if tools else f"No tool matches {query[:100]!r}; try other words."
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"tools": tools}, "isError": False}


def inner_call(args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name and arguments inside a `call_tool` call. Raises WireError."""
    name = args.get("name")
    inner = args.get("arguments", {})
    if not isinstance(name, str) or not isinstance(inner, Mapping):
        raise WireError(INVALID_PARAMS, f"{CALL} takes `name`, a text, and `arguments`, an object")
    return name, inner


def unknown(name: str, view: ToolView) -> dict[str, Any]:
    """A tool error for a name that `call_tool` does not know, with those it may have meant."""
    similar = view.similar(name)
    hint = f"did you mean {', '.join(similar)}?" if similar else f"find tools with `{SEARCH}`"
    text = f"Error [E_TOOL_NOT_FOUND]: no tool is called {name[:200]!r}; {hint}"
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _line(tool: Mapping[str, Any]) -> str:
    return summary_line(tool["name"], str(tool.get("description", "")), tool.get("inputSchema", {}))


def _wrong(message: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"Error [E_INVALID_PARAMS]: {message}"}], "isError": True}
