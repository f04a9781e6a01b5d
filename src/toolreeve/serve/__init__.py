"""The doors through which others call us."""
