"""SQLite storage: connection, schema and group commit."""
