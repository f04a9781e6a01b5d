"""Tables of the record in SQL that both SQLite and PostgreSQL understand."""
