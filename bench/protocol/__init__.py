"""Cost of MCP: baseline servers, load generation and the comparison."""
