"""The MCP door: its calls take the same road as every other call."""
