"""Outgoing connections: addresses, rules, and the guarded HTTP client."""
