"""Control protocol: an agent's questions, approvals and progress, for a person."""
