"""Settings by TOML table: one module per table of toolreeve.toml.

Every field is wired to the code that obeys it.
"""
