"""Attack suites, one module each, with the outcome of every payload."""
