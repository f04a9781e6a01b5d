"""Secrets: which paths may hold them, how values are recognised and redacted."""
