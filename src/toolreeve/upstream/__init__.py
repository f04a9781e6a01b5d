"""MCP client: connections to upstream servers, and the tools they offer."""
