"""OAuth for MCP servers: logging in, and storing the tokens."""
