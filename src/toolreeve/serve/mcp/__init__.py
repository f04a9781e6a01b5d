"""MCP door: its calls take the same road as all others."""
