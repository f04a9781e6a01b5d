"""Which settings belong together? Each class is one table of the file, and every field is wired to what obeys it."""
