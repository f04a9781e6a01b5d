"""Reads MCP server entries, in the format of any client, into `ServerSpec`s."""
