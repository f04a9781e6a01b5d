"""The wire formats of model providers, from the server's side. Requests are checked as strictly as the providers do."""
