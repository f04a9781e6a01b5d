"""Toolreeve: the tool runtime for AI agents."""
