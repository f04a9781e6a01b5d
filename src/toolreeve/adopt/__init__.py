"""Adopts the MCP servers of other agent clients."""
