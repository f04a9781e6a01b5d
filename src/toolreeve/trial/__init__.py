"""Trials: what a command changed in its layer, committed to the real tree."""
