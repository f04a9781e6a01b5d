"""The client side of ACP: holds an agent's process and serves its requests."""
