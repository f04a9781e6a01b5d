"""Use the tools of an MCP server on the same road as all others."""

import asyncio

from toolreeve import Toolreeve

SERVERS = {
    "machine": {
        "command": "toolreeve-system-info",
        "trusted": True,  # believe its read-only annotations, so these calls need no approval
        "deny": ["network_*"],
    },
}


async def main() -> None:
    async with Toolreeve(mcp_servers=SERVERS) as reeve:
        for tool in await reeve.discover_mcp_tools(server_name="machine"):
            print(tool["name"], tool["danger_level"])
        # → mcp__machine__disk_info low
        # → mcp__machine__system_info low
        result = await reeve.call("machine__system_info")
        print(result.data["os"])  # → Linux


if __name__ == "__main__":
    asyncio.run(main())
