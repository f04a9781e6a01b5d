"""Transports to MCP servers: stdio, streamable HTTP and SSE."""
