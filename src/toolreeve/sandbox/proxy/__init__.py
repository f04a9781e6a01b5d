"""The guarding proxy between sandboxed processes and the network."""
