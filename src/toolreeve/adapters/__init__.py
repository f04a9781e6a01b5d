"""Adapters: a runtime's tools for other agent frameworks, on the road."""
