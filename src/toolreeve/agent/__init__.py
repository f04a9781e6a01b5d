"""The agent: a model that acts through the runtime's tools."""
