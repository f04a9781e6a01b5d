"""Parser of shell commands into a closed set of forms."""
