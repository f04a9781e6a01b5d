"""What does MCP cost here, and what elsewhere? Servers to compare with, loads to put on them, and the comparison."""
