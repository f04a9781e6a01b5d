"""The tools of a server: checked, pinned, named and registered."""
