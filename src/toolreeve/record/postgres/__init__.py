"""The record in PostgreSQL, shared by any number of gateways."""
