"""The runtime and its composition root."""
