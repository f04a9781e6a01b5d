"""Who says yes? Broker, grants, prompts and channels to people."""
