"""Tools defined by YAML and Python files."""
