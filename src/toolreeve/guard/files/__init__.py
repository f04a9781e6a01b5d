"""File access within the configured roots, by descriptor."""
