"""JSON-RPC 2.0, shared by the MCP client and the MCP server."""
