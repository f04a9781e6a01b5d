"""Guards: bounds on paths and network addresses."""
