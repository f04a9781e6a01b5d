"""May we use a server that asks who we are? Logging in, and keeping what was granted."""
