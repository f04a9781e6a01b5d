"""Baseline: `echo` on the SDK's low-level server. `lowlevel.py stdio | PORT [TOOLS]`"""

import sys
from typing import Any

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def new_server(tools: int) -> Server[Any]:
    names = ["echo", *(f"tool_{number}" for number in range(1, tools))]
    listed = [types.Tool(name=name, description="Say it again.", input_schema=SCHEMA) for name in names]
    schemas = {each.name: each.input_schema for each in listed}

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        said = (params.arguments or {})["text"]
        return types.CallToolResult(content=[types.TextContent(type="text", text=said)])

    return Server(
        "baseline", version="1", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=schemas.get
    )


async def _on_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    server = new_server(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    if sys.argv[1] == "stdio":
        anyio.run(_on_stdio, server)
    else:
        import uvicorn

        uvicorn.run(server.streamable_http_app(json_response=True), port=int(sys.argv[1]), log_level="error")
