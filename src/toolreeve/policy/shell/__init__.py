"""Shell command analysis: parse a command and derive its effects."""
