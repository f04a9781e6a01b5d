"""What is configured, and who said so? Files, environment and flags become one `Settings` tree here."""

from toolreeve.config.settings import (
    Approval,
    Commands,
    Limits,
    Mcp,
    Network,
    Policy,
    Quality,
    Record,
    Sandbox,
    Serve,
    Settings,
    State,
    Workspace,
)
from toolreeve.config.sources import Configuration, from_settings, load

__all__ = [
    "Approval",
    "Commands",
    "Configuration",
    "Limits",
    "Mcp",
    "Network",
    "Policy",
    "Quality",
    "Record",
    "Sandbox",
    "Serve",
    "Settings",
    "State",
    "Workspace",
    "from_settings",
    "load",
]
