"""Tools elsewhere: MCP servers that are spoken to as a client, and what they offer."""
