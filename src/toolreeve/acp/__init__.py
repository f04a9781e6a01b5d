"""Agent Client Protocol (ACP): we hold agents, and editors hold ours."""
