"""ACP client: holds an agent's process and serves its requests."""
