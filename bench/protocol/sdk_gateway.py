"""Baseline gateway: an SDK server that forwards calls through an SDK client to the given command."""

import sys
from typing import Any

import anyio
import mcp.types as types
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def main(command: list[str]) -> None:
    async with Client(StdioServerParameters(command=command[0], args=command[1:]), mode="legacy") as client:
        listed = await client.list_tools()

        async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
            return listed

        async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await client.session.call_tool(params.name, params.arguments)

        server: Server[Any] = Server("gateway", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
