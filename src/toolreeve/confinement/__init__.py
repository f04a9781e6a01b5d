"""Confinement of calls: where they run, and what is kept."""
