"""Trials: what a command changed in its layer, committed."""
