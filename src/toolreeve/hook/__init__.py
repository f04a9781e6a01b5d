"""Hooks of agent clients: our policy decides about their own tools."""
