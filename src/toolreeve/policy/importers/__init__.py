"""Importers of other programs' permission rules."""
