"""Approval channels, one module each."""
