"""The wire formats of model providers, from the server's side."""
