"""What is configured, and who said so? Files, environment and flags become one `Settings` tree here."""

from toolreeve.config.sections.calls import Approval, Limits, Policy
from toolreeve.config.sections.commands import Commands, Quality, Sandbox
from toolreeve.config.sections.doors import Mcp, Serve
from toolreeve.config.sections.keeping import Record, State
from toolreeve.config.sections.reach import Network, Workspace
from toolreeve.config.settings import Settings
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
