"""Replays every known way through the walls, as root and as an ordinary user."""
