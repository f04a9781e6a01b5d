"""The A2A door: other agents call tools here; needs the extra `a2a`."""
