"""Program specifications: YAML files by family, compiled to one JSON file."""
