"""Specifications of programs, one YAML file a family, and the JSON file that they compile to."""
