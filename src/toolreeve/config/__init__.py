"""What is configured, and who said so? Files, environment and flags become one `Settings` tree here."""

from toolreeve.config.sections.commands import Commands, Quality, Sandbox
from toolreeve.config.sections.policy import Approval, Limits, Policy
from toolreeve.config.sections.serve import Mcp, Serve
from toolreeve.config.sections.state import Record, State
from toolreeve.config.sections.workspace import Network, Workspace
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
