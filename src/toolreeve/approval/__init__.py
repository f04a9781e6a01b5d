"""Approvals: the broker, its grants, prompts and channels."""
