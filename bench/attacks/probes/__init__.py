"""Probes: known attacks on a whole runtime, as root and as an ordinary user."""
