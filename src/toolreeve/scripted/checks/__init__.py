"""Load-time checks: refuse templates in which a value could become code."""
