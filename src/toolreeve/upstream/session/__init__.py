"""One MCP session with a server, in either era."""
