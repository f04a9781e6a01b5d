"""One MCP session with a server: requests, responses and server requests, in both eras."""
