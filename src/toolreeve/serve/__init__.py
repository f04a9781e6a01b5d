"""The doors: servers through which clients call tools."""
