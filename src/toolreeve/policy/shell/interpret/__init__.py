"""Interpretation of parsed commands: expansion, scope and what each command does."""
