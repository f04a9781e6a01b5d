"""Connectors: tools for services that the user has an account with."""
