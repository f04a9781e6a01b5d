"""Tools that files define."""
