"""Within what bounds? Paths, addresses, secrets."""
