"""Confinement of a call: where it runs, what it changed, what is kept."""
