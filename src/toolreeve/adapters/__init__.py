"""Adapters: a runtime's tools for other agent frameworks. Every call takes the road."""
