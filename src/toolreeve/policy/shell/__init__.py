"""What would a shell command do? Parsed, looked up program by program, and told as effects."""
