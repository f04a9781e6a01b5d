"""The MCP door: what a client sees and does here takes the same road as every other call."""
