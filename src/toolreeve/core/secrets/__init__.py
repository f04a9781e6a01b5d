"""Secrets: paths that may hold them, recognition and redaction of values."""
