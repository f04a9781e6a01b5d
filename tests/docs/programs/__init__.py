"""Typed programs that type checkers accept; nothing imports them."""
