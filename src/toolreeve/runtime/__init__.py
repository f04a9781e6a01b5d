"""Composition root: builds the runtime from its settings."""
